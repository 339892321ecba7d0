// The sockets towards all servers, by the server's number: those of the pool first, then those that clients asked
// themselves, which come and go. The one place that opens, sweeps and closes them.

import { LRUCache } from 'lru-cache'
import type { Clock } from '../../core/clock.ts'
import { invariant } from '../../core/invariant.ts'
import { RestingTimer } from '../../core/resting-timer.ts'
import type { AskedServer, AskedServers } from './asked-servers.ts'
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

export const LINKS_MAX = 256
/** UDP sockets of one such server; its port and id are as hard to guess as with more. */
export const SOCKETS_PER_ASKED = 4
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

export interface AskedLinksOptions {
  readonly servers: readonly ServerAddress[]
  /** `9.9.9.9:53` */
  readonly keyOf: (server: ServerAddress) => string
  readonly max?: number
  /** Puts links to a server at that number, which is free. */
  readonly open: (server: ServerAddress, number: number) => void
  /** Closes the links of that number; nothing waits on them. */
  readonly close: (number: number) => void
}

interface Link {
  readonly number: number
  /** Queries that wait for the server. */
  waiting: number
  /** No longer kept: closes when nothing waits. */
  dropped: boolean
}

/**
 * Links to the servers that clients asked. The numbers of such servers follow those of the pool. At most LINKS_MAX are
 * kept, and the least recently asked goes first: at once when nothing waits on it, else when its last query has ended.
 * Beyond twice that many a query isn't forwarded. Sockets open when a query needs them and close by age and
 * idleness as those of the pool do, so an unused link holds none.
 */
export class AskedLinks {
  readonly counters = { opened: 0, closed: 0, refused: 0 }
  readonly #options: AskedLinksOptions
  readonly #pool: ReadonlyMap<string, number>
  readonly #links: LRUCache<string, Link>
  /** By number, less those of the pool. */
  readonly #byNumber: (Link | undefined)[] = []
  readonly #free: number[] = []
  readonly #max: number

  constructor(options: AskedLinksOptions) {
    this.#options = options
    const { servers, keyOf, max = LINKS_MAX } = options
    this.#max = max
    this.#pool = new Map(servers.map((server, i) => [keyOf(server), i]))
    this.#links = new LRUCache({ max, dispose: (link) => this.#drop(link) })
  }

  /** Links that are open, dropped ones whose queries haven't ended included. */
  get open(): number {
    return this.counters.opened - this.counters.closed
  }

  /** The number of a server for one query, which ends with `end`; -1 when there are too many. */
  begin(server: AskedServer): number {
    const configured = this.#pool.get(server.key)
    if (configured !== undefined) return configured
    const known = this.#links.get(server.key)
    const link = known ?? this.#open(server)
    if (link === undefined) {
      this.counters.refused++
      return -1
    }
    link.waiting++
    return link.number
  }

  /** A query that `begin` gave the number to has ended. */
  end(number: number): void {
    const link = this.#byNumber[number - this.#pool.size]
    if (link === undefined) return
    invariant(link.waiting > 0, 'a query ends once')
    link.waiting--
    if (link.dropped && link.waiting === 0) this.#close(link)
  }

  #open(server: AskedServer): Link | undefined {
    if (this.#free.length === 0 && this.#byNumber.length === 2 * this.#max) return undefined
    const place = this.#free.pop() ?? this.#byNumber.length
    const link: Link = { number: this.#pool.size + place, waiting: 0, dropped: false }
    this.#byNumber[place] = link
    this.counters.opened++
    this.#options.open(server.address, link.number)
    this.#links.set(server.key, link)
    return link
  }

  #drop(link: Link): void {
    link.dropped = true
    if (link.waiting === 0) this.#close(link)
  }

  #close(link: Link): void {
    const place = link.number - this.#pool.size
    this.#byNumber[place] = undefined
    this.#free.push(place)
    this.counters.closed++
    this.#options.close(link.number)
  }
}
