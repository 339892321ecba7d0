// Coalescing finds queries in flight that a client repeats with the same octets, except for the id. The first query, the leader, is
// sent upstream. The repetitions, its followers, get copies of its answer or failure, each with its own id, to its own port and
// over its own transport. Leader and follower have the same client address and endpoint [F3], and the same asked server if
// clients choose the server. A leader over UDP has no follower over TCP, because the follower's answer must not be cut.
// The state is in typed arrays by slot. `join` is one hash lookup of at most LOOKS_MAX steps, and allocates nothing.

import { hashPair } from '../../core/tables/keyed-hash.ts'
import { LinkedRows, NO_ROW } from '../../core/tables/linked-rows.ts'
import { OVER_TCP, OVER_UDP } from '../messages/client-columns.ts'
import type { InFlightTable } from '../messages/in-flight.ts'

/** The largest number of followers of one leader. The next repetition becomes a leader. */
export const FOLLOWERS_MAX = 64
/** The largest number of leaders that `join` compares. It limits the cost of a client that varies options with one question. */
const LOOKS_MAX = 8

export class Coalescing {
  readonly #inFlight: InFlightTable
  /** True if the asked server must be the same. */
  readonly #byAsked: boolean
  /** The leaders of each hash bucket. */
  readonly #buckets: LinkedRows
  readonly #mask: number
  readonly #hashes: Uint32Array
  readonly #isLeader: Uint8Array
  /** For a leader, its newest follower. For a follower, the follower that joined before it. */
  readonly #followers: Int32Array
  readonly #counts: Uint8Array

  constructor(inFlight: InFlightTable, byAsked: boolean) {
    const { capacity } = inFlight
    this.#inFlight = inFlight
    this.#byAsked = byAsked
    const buckets = 2 ** Math.ceil(Math.log2(Math.max(capacity, 2)))
    this.#buckets = new LinkedRows(capacity, buckets)
    this.#mask = buckets - 1
    this.#hashes = new Uint32Array(capacity)
    this.#isLeader = new Uint8Array(capacity)
    this.#followers = new Int32Array(capacity)
    this.#counts = new Uint8Array(capacity)
  }

  /** Makes a slot that was just taken a follower (true) or a leader (false). */
  join(slot: number): boolean {
    const inFlight = this.#inFlight
    const hash = hashPair(inFlight.questionHashes[slot]!, inFlight.clientOf(slot))
    let leader = this.#buckets.first(hash & this.#mask)
    for (let i = 0; i < LOOKS_MAX && leader !== NO_ROW; i++, leader = this.#buckets.after(leader)) {
      if (this.#hashes[leader] !== hash || !this.#serves(leader, slot)) continue
      if (this.#counts[leader] === FOLLOWERS_MAX) break
      this.#counts[leader]!++
      this.#followers[slot] = this.#followers[leader]!
      this.#followers[leader] = slot
      return true
    }
    this.#lead(slot, hash)
    return false
  }

  /** Returns the newest follower of a leader, or the follower that joined before a follower; -1 if there is none. */
  followerOf(slot: number): number {
    return this.#followers[slot]!
  }

  /** Ends a leader: no further query joins it. Does nothing if the slot is no leader. */
  end(slot: number): void {
    if (this.#isLeader[slot] === 0) return
    this.#isLeader[slot] = 0
    this.#buckets.remove(this.#hashes[slot]! & this.#mask, slot)
  }

  #lead(slot: number, hash: number): void {
    this.#hashes[slot] = hash
    this.#buckets.addFirst(hash & this.#mask, slot)
    this.#isLeader[slot] = 1
    this.#followers[slot] = NO_ROW
    this.#counts[slot] = 0
  }

  #serves(leader: number, slot: number): boolean {
    const inFlight = this.#inFlight
    return (
      inFlight.clientOf(leader) === inFlight.clientOf(slot) &&
      inFlight.endpoints[leader] === inFlight.endpoints[slot] &&
      inFlight.generations[leader] === inFlight.generations[slot] &&
      (inFlight.transports[leader] === OVER_TCP || inFlight.transports[slot] === OVER_UDP) &&
      inFlight.isSameMessage(leader, slot) &&
      (!this.#byAsked || inFlight.isSameAsked(leader, slot))
    )
  }
}
