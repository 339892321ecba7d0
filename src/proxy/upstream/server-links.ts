// ServerLinks opens, sweeps and closes the sockets to all servers. A server's link is its UDP sockets and its TCP connection. Links
// are indexed by the server's number: first the servers of the pool, then the servers that clients chose, whose links are temporary.

import { LRUCache } from 'lru-cache'
import type { Clock } from '../../core/clock.ts'
import { invariant } from '../../core/invariant.ts'
import { RestingTimer } from '../../core/resting-timer.ts'
import type { AskedServer, AskedServers } from './asked-servers.ts'
import { OF_POOL } from './attempts.ts'
import type { ClientColumns } from '../messages/client-columns.ts'
import type { Datagrams } from '../sockets/datagrams.ts'
import type { RandomPool } from '../../core/random.ts'
import { formatServer, type ServerAddress } from './server-pool.ts'
import type { Streams } from '../sockets/streams.ts'
import type { SocketNumbers, UpstreamEvents, UpstreamSocket } from './upstream-socket.ts'
import { UpstreamTcp } from './upstream-tcp.ts'
import { UpstreamUdp } from './upstream-udp.ts'

/** The number of UDP sockets per server, and the number of queries or milliseconds after which a socket is renewed. */
export interface UdpSocketOptions {
  readonly sockets?: number
  readonly renewQueries?: number
  readonly renewMs?: number
}

export interface ServerLinksOptions {
  readonly clock: Clock
  readonly random: RandomPool
  readonly streams: Pick<Streams, 'connect'>
  readonly datagrams: Pick<Datagrams, 'turn' | 'connect'>
  readonly numbers: SocketNumbers
  readonly events: UpstreamEvents
  /** The servers of the pool. */
  readonly servers: readonly ServerAddress[]
  readonly udp: UdpSocketOptions | undefined
  /** The servers that clients asked; undefined if clients cannot choose the server. */
  readonly asked: AskedServers | undefined
}

export const LINKS_MAX = 256
/** UDP sockets of a server that clients chose. A random port and id are as hard to guess as with more sockets. */
export const SOCKETS_PER_ASKED = 4
/** Result of `begin`: clients have chosen too many servers. */
export const NO_LINK = -2
/** Interval at which open sockets are swept, in milliseconds. */
const SWEEP_MS = 1000

export class ServerLinks {
  /** The UDP links by server. When a number is reused, the counters continue. */
  readonly udp: UpstreamUdp[] = []
  readonly tcp: UpstreamTcp[] = []
  /** Links to servers that clients chose. */
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

  /** Begins one query. Returns the server that the row's client chose, OF_POOL if the pool chooses, or NO_LINK. */
  begin(clients: ClientColumns, row: number): number {
    this.#sweeper.wake()
    const asked = this.#options.asked?.of(clients, row)
    if (asked === undefined || asked.kind === 'pool') return OF_POOL
    const server = this.asked.begin(asked)
    return server < 0 ? NO_LINK : server
  }

  /** Ends one query. `server` is what `begin` returned. */
  end(server: number): void {
    if (server !== OF_POOL) this.asked.end(server)
  }

  /** Returns a socket for a probe of a server of the pool. */
  pick(server: number): UpstreamSocket | undefined {
    this.#sweeper.wake()
    return this.udp[server]?.pick()
  }

  /** Closes sockets that are old or idle. Returns true if a socket was open. */
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

/** Copies the counters of the link that had the number before, except `open`, which is the present number of open sockets. */
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
  /** Returns the key of a server, such as `9.9.9.9:53`. */
  readonly keyOf: (server: ServerAddress) => string
  readonly max?: number
  /** Opens the link to a server with a free number. */
  readonly open: (server: ServerAddress, number: number) => void
  /** Closes the link with this number. No query waits on it. */
  readonly close: (number: number) => void
}

interface Link {
  readonly number: number
  /** Queries that wait for the server. */
  waiting: number
  /** True after the link was removed from the table. It closes when no query waits. */
  dropped: boolean
}

/**
 * AskedLinks keeps the links to servers that clients chose. Their numbers follow those of the pool. The table keeps LINKS_MAX links
 * (by default). At this bound the least recently asked link is removed: at once if no query waits on it, otherwise when its last
 * query has ended. If twice as many links are open, a query to a further server is refused. A link opens sockets when a query needs
 * them, and closes them when they are old or idle, so an unused link has no sockets.
 */
export class AskedLinks {
  readonly counters = { opened: 0, closed: 0, refused: 0 }
  readonly #options: AskedLinksOptions
  readonly #pool: ReadonlyMap<string, number>
  readonly #links: LRUCache<string, Link>
  /** The links by number minus the number of servers in the pool. */
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

  /** The number of open links, including removed links whose queries have not ended. */
  get open(): number {
    return this.counters.opened - this.counters.closed
  }

  /** Begins one query, which must end with `end`. Returns the number of the server, or -1 if there are too many servers. */
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

  /** Ends one query. `number` is what `begin` returned. */
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
