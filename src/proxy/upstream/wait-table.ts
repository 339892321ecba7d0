// What each upstream socket waits for: (socket, id) -> the slot in flight. A slot can wait on several sockets
// at once, one per attempt (an earlier server may still answer while the next is asked), so a wait is
// numbered slot * width + attempt. Ids are unique per socket (RFC 7766 6.2.1), so a reply finds at most one.
// Typed arrays and linked lists: add, find and remove are O(1); nothing is allocated per query.

import { invariant } from '../../core/invariant.ts'
import { LinkedRows, NO_ROW } from '../../core/tables/linked-rows.ts'
import { UPSTREAM_SOCKETS_MAX } from './upstream-socket.ts'

const MIX = 0x9e3779b1

export class WaitTable {
  /** Waits that one slot can have. */
  readonly width: number
  readonly #active: Uint8Array
  readonly #sockets: Uint16Array
  readonly #ids: Uint16Array
  /** When each began, in the clock's milliseconds. */
  readonly #since: Float64Array
  /** Waits in the same hash bucket. */
  readonly #buckets: LinkedRows
  readonly #mask: number
  /** Waits on the same socket, newest first. */
  readonly #bySocket: LinkedRows
  readonly #socketCounts: number[] = []

  constructor(slots: number, width: number) {
    const waits = slots * width
    this.width = width
    this.#active = new Uint8Array(waits)
    this.#sockets = new Uint16Array(waits)
    this.#ids = new Uint16Array(waits)
    this.#since = new Float64Array(waits)
    const buckets = 2 ** Math.ceil(Math.log2(Math.max(slots * 2, 2)))
    this.#buckets = new LinkedRows(waits, buckets)
    this.#mask = buckets - 1
    this.#bySocket = new LinkedRows(waits, UPSTREAM_SOCKETS_MAX)
  }

  /** The wait of a slot's attempt 0..width-1. */
  at(slot: number, attempt: number): number {
    return slot * this.width + attempt
  }

  slotOf(wait: number): number {
    return (wait / this.width) | 0
  }

  idOf(wait: number): number {
    return this.#ids[wait]!
  }

  sinceOf(wait: number): number {
    return this.#since[wait]!
  }

  isActive(wait: number): boolean {
    return this.#active[wait] === 1
  }

  socketOf(wait: number): number {
    return this.#sockets[wait]!
  }

  /** The active wait of that socket and id, or -1. */
  find(socket: number, id: number): number {
    let wait = this.#buckets.first(this.#bucket(socket, id))
    while (wait !== NO_ROW && (this.#ids[wait] !== id || this.#sockets[wait] !== socket)) {
      wait = this.#buckets.after(wait)
    }
    return wait
  }

  /** Starts a wait. The socket must not wait for that id already. */
  add(wait: number, socket: number, id: number, now: number): void {
    invariant(!this.isActive(wait), 'an attempt waits once')
    this.#active[wait] = 1
    this.#sockets[wait] = socket
    this.#ids[wait] = id
    this.#since[wait] = now
    this.#buckets.addFirst(this.#bucket(socket, id), wait)
    this.#bySocket.addFirst(socket, wait)
    this.#socketCounts[socket] = (this.#socketCounts[socket] ?? 0) + 1
  }

  /** Ends an active wait. */
  remove(wait: number): void {
    invariant(this.isActive(wait), 'only an active wait ends')
    this.#active[wait] = 0
    const socket = this.#sockets[wait]!
    this.#buckets.remove(this.#bucket(socket, this.#ids[wait]!), wait)
    this.#bySocket.remove(socket, wait)
    this.#socketCounts[socket] = (this.#socketCounts[socket] ?? 1) - 1
  }

  /** The newest wait on a socket, or -1. */
  newestOf(socket: number): number {
    return this.#bySocket.first(socket)
  }

  /** The wait on the same socket that began before this one, or -1. */
  olderThan(wait: number): number {
    return this.#bySocket.after(wait)
  }

  /** How many waits a socket has. */
  countOf(socket: number): number {
    return this.#socketCounts[socket] ?? 0
  }

  #bucket(socket: number, id: number): number {
    return (Math.imul(socket + 1, MIX) ^ id) & this.#mask
  }
}
