// What a daemon does of a take-over, whoever is at the other end: coming to rest before it gives everything away, and
// going on with what it is given. How that travels is the business of giving.ts and taking.ts.

import { UnavailableError } from '../core/errors.ts'
import type { Daemon } from '../daemon/daemon.ts'
import type { DnsProxy } from '../proxy/dns-proxy.ts'
import { OVER_TCP } from '../proxy/messages/client-columns.ts'
import type { HandedQuery, HandedSockets } from '../proxy/handed.ts'

export interface HandedOver extends HandedSockets {
  readonly locks: readonly number[]
  /** Whether somebody else keeps the listening sockets, too. */
  readonly outlives: boolean
}

const LOOK_MS = 2
const REST_MAX_MS = 2000

/** Until the datapath has confirmed what was asked of it and no answer is held; rejects when that takes too long. */
export async function quiet({ clock, core, proxy }: Daemon): Promise<void> {
  const until = clock.now() + REST_MAX_MS
  await new Promise<void>((resolve, reject) => {
    const look = (): void => {
      if (!core.committer.isUnderWay && proxy.releases.count === 0) resolve()
      else if (clock.now() < until) clock.after(LOOK_MS, look)
      else reject(new UnavailableError('Cannot hand over: the datapath comes to no end'))
    }
    look()
  })
}

/** Connections of another daemon's clients that are ours now, and the queries that come after them. */
export class TakenOn {
  readonly #proxy: DnsProxy
  /** Our listener by the number that the other one has for it. */
  readonly #listeners: readonly number[]
  readonly #connections = new Map<number, number>()

  constructor(proxy: DnsProxy, { listeners, connections }: HandedSockets) {
    const { bound, tcp } = proxy.listeners
    this.#proxy = proxy
    this.#listeners = listeners.map(({ family, octets, port }) =>
      bound.findIndex((own) => {
        const isSame = own.octets.every((octet, i) => octet === octets[i])
        return isSame && own.family === family && own.port === port
      }),
    )
    for (const connection of connections) {
      const number = tcp.takeOn(connection)
      if (number !== undefined) this.#connections.set(connection.number, number)
    }
  }

  /** Admits a query, or settles what became of it. Of a client that is gone nothing becomes. */
  query(handed: HandedQuery): void {
    const { answersAtHand, pipeline } = this.#proxy
    const isTcp = handed.transport === OVER_TCP
    const channel = isTcp ? this.#connections.get(handed.channel) : this.#listeners[handed.channel]
    if (channel === undefined || channel < 0) return
    answersAtHand.take({ ...handed, channel }, pipeline)
  }
}
