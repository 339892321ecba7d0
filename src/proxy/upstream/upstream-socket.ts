// UpstreamSocket is the interface of a socket to a server, over UDP or TCP. SocketNumbers gives sockets the numbers that the table of
// waits uses. A number is reused only after no query waits on its socket.

import type { MessageView } from '../../dns/message-view.ts'

/** Callbacks of every upstream socket. No callback is called during `send`. */
export interface UpstreamEvents {
  /** A message arrived. It is valid during the call. */
  onMessage(socket: UpstreamSocket, message: MessageView): void
  /** The socket failed: the queries that wait on it get no answer from it. */
  onFault(socket: UpstreamSocket): void
  /** Returns true if a query waits on the socket with this number. */
  isWaiting(number: number): boolean
}

export interface UpstreamSocket {
  readonly number: number
  /** The server's number. */
  readonly server: number
  readonly overTcp: boolean
  /** True if no new query uses the socket. It closes when no query waits on it. */
  readonly retired: boolean
  /** Sends a query with `id` as the first two octets. Returns false on failure. */
  send(octets: Uint8Array, offset: number, length: number, id: number): boolean
  /** Counts a message that can be an attacker's guess. Returns true at the guess from which on the socket's queries need another way. */
  guessed(): boolean
  /** Called when the last query that waited on the socket has ended. */
  drained(): void
  close(): void
}

/** The largest number of open sockets. Their numbers must fit the 16 bits in the table of waits. */
export const UPSTREAM_SOCKETS_MAX = 65536

export class SocketNumbers {
  readonly #sockets: (UpstreamSocket | undefined)[] = []
  readonly #free: number[] = []

  /** Returns a number for a new socket, or -1 if UPSTREAM_SOCKETS_MAX sockets are open. */
  take(): number {
    const free = this.#free.pop()
    if (free !== undefined) return free
    if (this.#sockets.length === UPSTREAM_SOCKETS_MAX) return -1
    this.#sockets.push(undefined)
    return this.#sockets.length - 1
  }

  set(number: number, socket: UpstreamSocket): void {
    this.#sockets[number] = socket
  }

  get(number: number): UpstreamSocket | undefined {
    return this.#sockets[number]
  }

  free(number: number): void {
    this.#sockets[number] = undefined
    this.#free.push(number)
  }
}
