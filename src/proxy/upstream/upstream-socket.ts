// What a socket towards a server looks like to the code that asks and listens, UDP or TCP, and the numbers
// by which the wait table knows them. A number is used again only after its socket waited for nothing any more.

/** Callbacks of every upstream socket; none is called from inside `send`. */
export interface UpstreamEvents {
  /** A message came; valid during the call. */
  onMessage(socket: UpstreamSocket, octets: Uint8Array, offset: number, length: number): void
  /** The queries that wait on the socket won't be answered there. */
  onFault(socket: UpstreamSocket): void
  /** Whether a query waits on the socket of that number. */
  isWaiting(number: number): boolean
}

export interface UpstreamSocket {
  readonly number: number
  /** Index of the server in the pool. */
  readonly server: number
  readonly overTcp: boolean
  /** No new query may use it; it closes when it waits for nothing. */
  readonly retired: boolean
  /** Sends a query with `id` as its first octets; false when it can't. */
  send(octets: Uint8Array, offset: number, length: number, id: number): boolean
  /** Nothing waits on it any more. */
  drained(): void
  close(): void
}

/** Sockets at once; a number must fit the wait table's 16 bits. */
export const UPSTREAM_SOCKETS_MAX = 65536

export class SocketNumbers {
  readonly #sockets: (UpstreamSocket | undefined)[] = []
  readonly #free: number[] = []

  /** A number for a new socket, or -1 when there are UPSTREAM_SOCKETS_MAX. */
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
