// This file has the steps of a take-over that are not messages (for those, see source.ts and successor.ts). `quiet` waits until
// the running daemon is at rest, so that everything can be handed over. TakenOn resumes the connections and queries of the
// previous daemon.

import { UnavailableError } from '../core/errors.ts'
import type { Daemon } from '../daemon/daemon.ts'
import type { DnsProxy } from '../proxy/dns-proxy.ts'
import { OVER_TCP } from '../proxy/messages/client-columns.ts'
import { HandedQueries } from '../proxy/handed-queries.ts'
import type { HandedQuery, HandedSockets } from '../proxy/handed.ts'

export interface HandedOver extends HandedSockets {
  readonly locks: readonly number[]
  /** True if systemd also keeps the listening sockets open. */
  readonly outlives: boolean
}

const LOOK_MS = 2
const REST_MAX_MS = 2000

/** Waits until the datapath has confirmed every commit and no answer is held. Rejects after two seconds. */
export async function quiet({ clock, core, proxy }: Daemon): Promise<void> {
  const until = clock.now() + REST_MAX_MS
  await new Promise<void>((resolve, reject) => {
    const look = (): void => {
      if (!core.committer.isUnderWay && proxy.releases.count === 0) resolve()
      else if (clock.now() < until) clock.after(LOOK_MS, look)
      else
        reject(new UnavailableError('Cannot hand over: the datapath did not come to rest in time'))
    }
    look()
  })
}

/** TakenOn resumes the previous daemon's connections at once, and each of its queries when that query arrives. */
export class TakenOn {
  readonly #queries: HandedQueries
  /** Index: the previous daemon's listener number. Value: this daemon's listener number, or -1. */
  readonly #listeners: readonly number[]
  readonly #connections = new Map<number, number>()

  constructor(proxy: DnsProxy, { listeners, connections }: HandedSockets) {
    const { bound, tcp } = proxy.listeners
    this.#queries = new HandedQueries(proxy)
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

  /** Admits a query, or settles its answer. Drops the query if its client is gone. */
  query(handed: HandedQuery): void {
    const isTcp = handed.transport === OVER_TCP
    const channel = isTcp ? this.#connections.get(handed.channel) : this.#listeners[handed.channel]
    if (channel === undefined || channel < 0) return
    this.#queries.take({ ...handed, channel })
  }
}
