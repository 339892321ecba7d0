// ConnectionTable holds the open TCP connections of clients by number, with a bound in total and per client address. A number is
// generation << 16 | slot. The slot that was freed first is reused first. A late answer cannot reach a newer connection, because
// a number repeats only after 65,536 uses of one slot. At a bound the connection that has been idle longest is closed. If no
// connection is idle, the new connection is refused (docs/spec/semantics 6).

import type { TcpConnection } from './tcp-connection.ts'

export const CONNECTIONS_MAX = 65536

export interface TcpServerLimits {
  /** `limits.tcp-connections`, at most CONNECTIONS_MAX. */
  readonly connections: number
  /** `limits.tcp-connections-per-client`. */
  readonly connectionsPerClient: number
  /** `limits.queries-per-tcp-connection`. */
  readonly queriesPerConnection: number
  /** `limits.tcp-idle-timeout`, in milliseconds. */
  readonly idleTimeout: number
  /** `limits.tcp-message-timeout`, in milliseconds. */
  readonly messageTimeout: number
}

export const DEFAULT_TCP_LIMITS: TcpServerLimits = {
  connections: 4096,
  connectionsPerClient: 64,
  queriesPerConnection: 256,
  idleTimeout: 10_000,
  messageTimeout: 5_000,
}

/** The counters of one server since its start. */
export class TcpCounters {
  accepted = 0
  /** Connections that are open now. */
  open = 0
  received = 0
  sent = 0
  /** Connections that were refused at the total bound, because no connection was idle. */
  refusedFull = 0
  /** Connections that were refused at the bound per client, because no connection of the client was idle. */
  refusedClientFull = 0
  /** Idle connections that were closed to make room. */
  evicted = 0
  closedIdle = 0
  /** Connections that were closed because a message was not completed in time. */
  closedIncomplete = 0
  /** Connections that were closed because the client did not read its answers. */
  closedSlowReader = 0
  /** How often reading a connection stopped, at the bound of unanswered queries or because the client did not read its answers. */
  readsPaused = 0
  /** Answers whose connection was closed before. */
  answersDropped = 0
  /** Errors of connections, such as resets, and errors of `accept`. */
  socketErrors = 0
}

/** `ok`: there is room. `evict`: there is room after this connection is closed. The other kinds name the bound that was reached. */
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
  /** Freed slots, in the order in which they were freed. */
  readonly #free: number[] = []
  /** All connections, least recently active first. */
  readonly #byActivity = new Set<TcpConnection>()
  readonly #byClient = new Map<string, Set<TcpConnection>>()

  constructor(limits: TcpServerLimits) {
    this.#limits = limits
    this.#generations = new Uint16Array(limits.connections)
  }

  get count(): number {
    return this.#byActivity.size
  }

  /** Tells if `client` can open one more connection, and which connection must be closed for it. */
  roomFor(client: string): Room {
    const own = this.#byClient.get(client)
    if (own !== undefined && own.size >= this.#limits.connectionsPerClient) {
      return evict(own) ?? { kind: 'client-full' }
    }
    if (this.count < this.#limits.connections) return OK
    return evict(this.#byActivity) ?? { kind: 'full' }
  }

  /** Returns the number for a new connection. There must be room. */
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

  /** Returns the open connection with this number, or undefined. */
  find(number: number): TcpConnection | undefined {
    const connection = this.#slots[number & 0xffff]
    return connection?.number === number ? connection : undefined
  }

  /** Marks a connection as the most recently active one. */
  touch(connection: TcpConnection): void {
    this.#byActivity.delete(connection)
    this.#byActivity.add(connection)
    const own = this.#byClient.get(connection.client)
    own?.delete(connection)
    own?.add(connection)
  }

  /** Removes a connection. Returns false if it was removed before. */
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

  /** Returns all connections, least recently active first. The caller can remove a connection during the iteration. */
  all(): IterableIterator<TcpConnection> {
    return this.#byActivity.values()
  }
}

/** Returns the first idle connection as one to evict, or undefined. */
function evict(connections: ReadonlySet<TcpConnection>): Room | undefined {
  for (const connection of connections) if (connection.idle) return { kind: 'evict', connection }
  return undefined
}
