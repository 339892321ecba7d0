// The sockets towards all servers, by the server's number: those of the pool first, then those that clients asked
// themselves, which come and go (asked-links.ts). One place that opens, looks after and closes them.

import type { Clock } from '../../core/clock.ts'
import { RestingTimer } from '../../core/resting-timer.ts'
import { AskedLinks, SOCKETS_PER_ASKED } from './asked-links.ts'
import type { AskedServers } from './asked-servers.ts'
import { OF_POOL } from './attempts.ts'
import type { ClientColumns } from '../messages/client-columns.ts'
import type { Datagrams } from '../sockets/datagrams.ts'
import type { RandomPool } from '../random.ts'
import { formatServer, type ServerAddress } from './server-pool.ts'
import type { Streams } from '../sockets/streams.ts'
import type { SocketNumbers, UpstreamEvents, UpstreamSocket } from './upstream-socket.ts'
import { UpstreamTcp } from './upstream-tcp.ts'
import { UpstreamUdp } from './upstream-udp.ts'

/** How many UDP sockets a server has, and after how many queries or milliseconds one is renewed. */
export interface UdpSocketOptions {
  readonly sockets?: number
  readonly renewQueries?: number
  readonly renewMs?: number
}

export interface ServerLinksOptions {
  readonly clock: Clock
  readonly random: RandomPool
  readonly streams: Streams
  readonly datagrams: Datagrams
  readonly numbers: SocketNumbers
  readonly events: UpstreamEvents
  /** The pool. */
  readonly servers: readonly ServerAddress[]
  readonly udp: UdpSocketOptions | undefined
  /** Where clients choose the server: which one each asked. */
  readonly asked: AskedServers | undefined
}

/** There are too many servers that clients asked. */
export const NO_LINK = -2
/** How often sockets are looked after while any is open. */
const SWEEP_MS = 1000

export class ServerLinks {
  /** Their counters are theirs, and go on when a number is used again. */
  readonly udp: UpstreamUdp[] = []
  readonly tcp: UpstreamTcp[] = []
  /** Those that clients asked themselves. */
  readonly asked: AskedLinks
  readonly #options: ServerLinksOptions
  readonly #sweeper: RestingTimer

  constructor(options: ServerLinksOptions) {
    this.#options = options
    this.#sweeper = new RestingTimer(options.clock, SWEEP_MS, () => this.#sweep())
    const { servers, udp = {} } = options
    servers.forEach((address, server) => this.#open(address, server, udp))
    this.asked = new AskedLinks({
      servers,
      keyOf: formatServer,
      open: (address, server) => this.#open(address, server, { sockets: SOCKETS_PER_ASKED }),
      close: (server) => {
        this.udp[server]?.stop()
        this.tcp[server]?.stop()
      },
    })
  }

  /** The server that a row's client chose, for one query; OF_POOL when that is left to us, or NO_LINK. */
  begin(clients: ClientColumns, row: number): number {
    this.#sweeper.wake()
    const asked = this.#options.asked?.of(clients, row)
    if (asked === undefined || asked.kind === 'pool') return OF_POOL
    const server = this.asked.begin(asked)
    return server < 0 ? NO_LINK : server
  }

  /** A query has ended that `begin` gave the number to. */
  end(server: number): void {
    if (server !== OF_POOL) this.asked.end(server)
  }

  /** A socket for one query of ours to a server of the pool. */
  pick(server: number): UpstreamSocket | undefined {
    this.#sweeper.wake()
    return this.udp[server]?.pick()
  }

  /** Closes sockets that are worn out or idle; whether any was open. */
  #sweep(): boolean {
    let open = 0
    for (const link of [...this.udp, ...this.tcp]) {
      open += link.counters.open
      link.sweep()
    }
    return open > 0
  }

  stop(): void {
    this.#sweeper.stop()
    for (const link of this.udp) link.stop()
    for (const link of this.tcp) link.stop()
  }

  #open(address: ServerAddress, server: number, udp: UdpSocketOptions): void {
    const own = { ...this.#options, address, server }
    this.udp[server] = goOn(this.udp[server], new UpstreamUdp({ ...own, ...udp }))
    this.tcp[server] = goOn(this.tcp[server], new UpstreamTcp(own))
  }
}

/** The counters of a link go on from those of the one that had its number before; `open` counts what is open. */
function goOn<T extends { readonly counters: Record<string, number> }>(
  before: T | undefined,
  link: T,
): T {
  if (before === undefined) return link
  for (const [name, count] of Object.entries(before.counters)) {
    if (name !== 'open') link.counters[name] = count
  }
  return link
}
