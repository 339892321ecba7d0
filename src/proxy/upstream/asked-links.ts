// Sockets towards the servers that clients asked. Numbers of such servers follow those of the pool, in the same tables
// of links. At most LINKS_MAX are kept, the least recently asked goes first: at once when nothing waits on it, else
// when its last query has ended. Beyond twice that many a query isn't forwarded. Sockets open when a query needs
// them and close by age and idleness as those of the pool do, so an unused link holds none.

import { LRUCache } from 'lru-cache'
import { invariant } from '../../core/invariant.ts'
import type { AskedServer } from './asked-servers.ts'
import type { ServerAddress } from './server-pool.ts'

export const LINKS_MAX = 256
/** UDP sockets of one such server; its port and id are as hard to guess as with more. */
export const SOCKETS_PER_ASKED = 4

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
