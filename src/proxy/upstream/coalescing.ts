// Queries in flight that a client asks again, in the same octets but for the id: one of them, the leader, is asked
// upstream, the others follow it and get copies of its answer or its failure, each under its own id, to its own
// port, over its own transport. Only within one client address and endpoint [F3], and one asked server
// where that is who is asked. A leader over UDP serves no follower over TCP, whose answer may not be cut.
// Typed arrays over the slots in flight: join is one hash lookup of at most LOOKS_MAX steps, nothing allocated.

import { hashPair } from '../../core/tables/keyed-hash.ts'
import { LinkedRows, NO_ROW } from '../../core/tables/linked-rows.ts'
import { OVER_TCP, OVER_UDP } from '../messages/client-columns.ts'
import type { InFlightTable } from '../messages/in-flight.ts'

/** Followers of one leader: what its answer releases in one go. The next such query leads anew. */
export const FOLLOWERS_MAX = 64
/** Leaders looked at: a client that varies options under one question pays with packets, not with our time. */
const LOOKS_MAX = 8

export class Coalescing {
  readonly #inFlight: InFlightTable
  /** Whether the asked server must be the same. */
  readonly #byAsked: boolean
  /** Leaders in the same hash bucket. */
  readonly #buckets: LinkedRows
  readonly #mask: number
  readonly #hashes: Uint32Array
  readonly #isLeader: Uint8Array
  /** A leader's first follower; a follower's next one. */
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

  /** The newest follower of a leader, or the follower that joined before that follower; -1 when there is none. */
  followerOf(slot: number): number {
    return this.#followers[slot]!
  }

  /** No query joins the leader any more. Nothing happens when the slot is no leader. */
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
