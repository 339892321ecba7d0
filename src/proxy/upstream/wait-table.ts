// What each upstream socket waits for: (socket, id) -> the slot in flight. A slot can wait on several sockets
// at once, one per attempt (an earlier server may still answer while the next is asked), so a wait is
// numbered slot * width + attempt. Ids are unique per socket (RFC 7766 6.2.1), so a reply finds at most one.
// Typed arrays and linked lists: add, find and remove are O(1); nothing is allocated per query.

import { invariant } from '../../core/invariant.ts'

const NONE = -1
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
  readonly #next: Int32Array
  readonly #previous: Int32Array
  /** Waits on the same socket, newest first. */
  readonly #socketNext: Int32Array
  readonly #socketPrevious: Int32Array
  readonly #buckets: Int32Array
  readonly #mask: number
  readonly #socketHeads: number[] = []
  readonly #socketCounts: number[] = []

  constructor(slots: number, width: number) {
    const waits = slots * width
    this.width = width
    this.#active = new Uint8Array(waits)
    this.#sockets = new Uint16Array(waits)
    this.#ids = new Uint16Array(waits)
    this.#since = new Float64Array(waits)
    this.#next = new Int32Array(waits)
    this.#previous = new Int32Array(waits)
    this.#socketNext = new Int32Array(waits)
    this.#socketPrevious = new Int32Array(waits)
    const buckets = 2 ** Math.ceil(Math.log2(Math.max(slots * 2, 2)))
    this.#buckets = new Int32Array(buckets).fill(NONE)
    this.#mask = buckets - 1
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
    let wait = this.#buckets[this.#bucket(socket, id)]!
    while (wait !== NONE && (this.#ids[wait] !== id || this.#sockets[wait] !== socket)) {
      wait = this.#next[wait]!
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
    const bucket = this.#bucket(socket, id)
    const first = this.#buckets[bucket]!
    this.#next[wait] = first
    this.#previous[wait] = NONE
    if (first !== NONE) this.#previous[first] = wait
    this.#buckets[bucket] = wait
    const newest = this.#socketHeads[socket] ?? NONE
    this.#socketNext[wait] = newest
    this.#socketPrevious[wait] = NONE
    if (newest !== NONE) this.#socketPrevious[newest] = wait
    this.#socketHeads[socket] = wait
    this.#socketCounts[socket] = (this.#socketCounts[socket] ?? 0) + 1
  }

  /** Ends an active wait. */
  remove(wait: number): void {
    invariant(this.isActive(wait), 'only an active wait ends')
    this.#active[wait] = 0
    const socket = this.#sockets[wait]!
    const next = this.#next[wait]!
    const previous = this.#previous[wait]!
    if (next !== NONE) this.#previous[next] = previous
    if (previous !== NONE) this.#next[previous] = next
    else this.#buckets[this.#bucket(socket, this.#ids[wait]!)] = next
    const older = this.#socketNext[wait]!
    const newer = this.#socketPrevious[wait]!
    if (older !== NONE) this.#socketPrevious[older] = newer
    if (newer !== NONE) this.#socketNext[newer] = older
    else this.#socketHeads[socket] = older
    this.#socketCounts[socket] = (this.#socketCounts[socket] ?? 1) - 1
  }

  /** The newest wait on a socket, or -1. */
  newestOf(socket: number): number {
    return this.#socketHeads[socket] ?? NONE
  }

  /** The wait on the same socket that began before this one, or -1. */
  olderThan(wait: number): number {
    return this.#socketNext[wait]!
  }

  /** How many waits a socket has. */
  countOf(socket: number): number {
    return this.#socketCounts[socket] ?? 0
  }

  #bucket(socket: number, id: number): number {
    return (Math.imul(socket + 1, MIX) ^ id) & this.#mask
  }
}
