// The open TCP connections of clients by number, the bounds on them, in all and per client address, and their counters. A number
// is generation << 16 | slot, and slots are used again in the order they were freed, so a late answer can't
// reach a connection that came later: a number repeats after 65,536 uses of one slot.
// At a bound the oldest idle connection gives way; without an idle one the newcomer is refused (docs/spec/semantics 6).

import type { TcpConnection } from './tcp-connection.ts'

export const CONNECTIONS_MAX = 65536

export interface TcpServerLimits {
  /** `limits.tcp-connections`, at most CONNECTIONS_MAX, and `limits.tcp-connections-per-client`. */
  readonly connections: number
  readonly connectionsPerClient: number
  /** `limits.queries-per-tcp-connection`. */
  readonly queriesPerConnection: number
  /** `limits.tcp-idle-timeout` and `limits.tcp-message-timeout`, in milliseconds. */
  readonly idleTimeout: number
  readonly messageTimeout: number
}

export const DEFAULT_TCP_LIMITS: TcpServerLimits = {
  connections: 4096,
  connectionsPerClient: 64,
  queriesPerConnection: 256,
  idleTimeout: 10_000,
  messageTimeout: 5_000,
}

/** What one server counts since its start. */
export class TcpCounters {
  accepted = 0
  /** Open now. */
  open = 0
  received = 0
  sent = 0
  /** Refused because all connections were busy, in all or of that client. */
  refusedFull = 0
  refusedClientFull = 0
  /** Idle ones closed to make room. */
  evicted = 0
  closedIdle = 0
  /** A message was begun and not completed in time. */
  closedIncomplete = 0
  /** The client didn't take its answers. */
  closedSlowReader = 0
  /** Times that reading stopped at the bound of unanswered queries. */
  readsPaused = 0
  /** Answers whose connection was gone. */
  answersDropped = 0
  /** Errors of connections (resets) and of accepting. */
  socketErrors = 0
}

/** `ok`, or which bound forbids another connection. */
export type Room =
  | { readonly kind: 'ok' }
  | { readonly kind: 'evict'; readonly connection: TcpConnection }
  | { readonly kind: 'client-full' }
  | { readonly kind: 'full' }

const OK: Room = { kind: 'ok' }

export class ConnectionTable {
  readonly #limits: TcpServerLimits
  readonly #slots: (TcpConnection | undefined)[] = []
  readonly #generations: Uint16Array
  /** Freed slots, first freed first. */
  readonly #free: number[] = []
  /** Least recently active first. */
  readonly #byActivity = new Set<TcpConnection>()
  readonly #byClient = new Map<string, Set<TcpConnection>>()

  constructor(limits: TcpServerLimits) {
    this.#limits = limits
    this.#generations = new Uint16Array(limits.connections)
  }

  get count(): number {
    return this.#byActivity.size
  }

  /** Whether `client` may open one more connection, and which one must go for it. */
  roomFor(client: string): Room {
    const own = this.#byClient.get(client)
    if (own !== undefined && own.size >= this.#limits.connectionsPerClient) {
      return evict(own) ?? { kind: 'client-full' }
    }
    if (this.count < this.#limits.connections) return OK
    return evict(this.#byActivity) ?? { kind: 'full' }
  }

  /** The number for a new connection; there must be room. */
  nextNumber(): number {
    const reuse = this.#slots.length >= this.#limits.connections
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
