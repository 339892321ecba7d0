// The open TCP connections of clients by number, and the bounds on them: in all and per client address. A number
// is generation << 16 | slot, and slots are used again in the order they were freed, so a late answer can't
// reach a connection that came later: a number repeats after 65,536 uses of one slot.
// At a bound the oldest idle connection gives way; without an idle one the newcomer is refused (docs/spec/semantics 6).

import type { TcpConnection } from './tcp-connection.ts'

export const CONNECTIONS_MAX = 65536

export interface ConnectionLimits {
  /** `limits.tcp-connections`, at most CONNECTIONS_MAX. */
  readonly total: number
  /** `limits.tcp-connections-per-client`. */
  readonly perClient: number
}

/** `ok`, or which bound forbids another connection. */
export type Room =
  | { readonly kind: 'ok' }
  | { readonly kind: 'evict'; readonly connection: TcpConnection }
  | { readonly kind: 'client-full' }
  | { readonly kind: 'full' }

const OK: Room = { kind: 'ok' }

export class ConnectionTable {
  readonly #limits: ConnectionLimits
  readonly #slots: (TcpConnection | undefined)[] = []
  readonly #generations: Uint16Array
  /** Freed slots, first freed first. */
  readonly #free: number[] = []
  /** Least recently active first. */
  readonly #byActivity = new Set<TcpConnection>()
  readonly #byClient = new Map<string, Set<TcpConnection>>()

  constructor(limits: ConnectionLimits) {
    this.#limits = limits
    this.#generations = new Uint16Array(limits.total)
  }

  get count(): number {
    return this.#byActivity.size
  }

  /** Whether `client` may open one more connection, and which one must go for it. */
  roomFor(client: string): Room {
    const own = this.#byClient.get(client)
    if (own !== undefined && own.size >= this.#limits.perClient) {
      return evict(own) ?? { kind: 'client-full' }
    }
    if (this.count < this.#limits.total) return OK
    return evict(this.#byActivity) ?? { kind: 'full' }
  }

  /** The number for a new connection; there must be room. */
  nextNumber(): number {
    const reuse = this.#slots.length >= this.#limits.total
    const slot = reuse ? (this.#free.shift() ?? 0) : this.#slots.length
    if (!reuse) this.#slots.push(undefined)
    return ((this.#generations[slot]! << 16) | slot) >>> 0
  }

  add(connection: TcpConnection): void {
    this.#slots[connection.number & 0xffff] = connection
    this.#byActivity.add(connection)
    const own = this.#byClient.get(connection.client)
    if (own === undefined) this.#byClient.set(connection.client, new Set([connection]))
    else own.add(connection)
  }

  /** The connection of that number, while it is open. */
  find(number: number): TcpConnection | undefined {
    const connection = this.#slots[number & 0xffff]
    return connection?.number === number ? connection : undefined
  }

  /** Moves a connection behind all others: it has just been used. */
  touch(connection: TcpConnection): void {
    this.#byActivity.delete(connection)
    this.#byActivity.add(connection)
    const own = this.#byClient.get(connection.client)
    own?.delete(connection)
    own?.add(connection)
  }

  /** False when it was removed before. */
  remove(connection: TcpConnection): boolean {
    const slot = connection.number & 0xffff
    if (this.#slots[slot] !== connection) return false
    this.#slots[slot] = undefined
    this.#generations[slot]!++
    this.#free.push(slot)
    this.#byActivity.delete(connection)
    const own = this.#byClient.get(connection.client)
    own?.delete(connection)
    if (own?.size === 0) this.#byClient.delete(connection.client)
    return true
  }

  /** All connections, least recently active first; one may be removed while walking. */
  all(): IterableIterator<TcpConnection> {
    return this.#byActivity.values()
  }
}

/** The first idle one. */
function evict(connections: ReadonlySet<TcpConnection>): Room | undefined {
  for (const connection of connections) if (connection.idle) return { kind: 'evict', connection }
  return undefined
}
