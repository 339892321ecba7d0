// ReleaseQueue holds answers until the datapath has confirmed their addresses. A held answer keeps its query's slot, so the
// bound on queries in flight also bounds held answers. When the revision that an answer needs is in force, the answer is
// settled again as if it had just arrived. So a change of its endpoint or its policy during the hold, or an expired entry,
// takes effect. Answers to one endpoint about one name leave in the order in which they arrived. Other answers do not wait for them.
//
// `dns.hold.limit` ends the hold, and `dns.hold.on-limit` says what happens to the answer then. Each held answer gets exactly one
// call of `end`. An empty queue costs nothing. If the datapath applies commits at once, the queue is always empty.

import type { Clock } from '../../core/clock.ts'
import { Histogram } from '../../core/tables/histogram.ts'
import { LinkedRows, NO_ROW } from '../../core/tables/linked-rows.ts'
import type { Committer } from '../../datapath/committer.ts'
import { AnswerBatch } from '../messages/answer-batch.ts'
import { DueTimer } from '../upstream/due.ts'
import { MessageView } from '../../dns/message-view.ts'
import { HeldAnswers } from './held-answers.ts'
import type { InFlightTable } from '../messages/in-flight.ts'

export interface ReleaseQueueOptions {
  readonly clock: Clock
  readonly inFlight: Pick<InFlightTable, 'capacity' | 'endpoints' | 'nameHash'>
  readonly committer: Pick<Committer, 'isUnderWay' | 'revision' | 'desired' | 'onEnd'>
  /** `dns.hold.limit`, in milliseconds. */
  readonly limitMs: number
  /** Settles held answers again. For each answer it must call `hold` or `end`. If `isLast` is true, it must call `end`. */
  readonly onSettle: (answers: AnswerBatch, isLast: boolean) => void
}

export class ReleaseQueue {
  readonly counters = {
    /** Answers that were held. */
    held: 0,
    /** Answers that were held for `dns.hold.limit`. */
    overdue: 0,
    /** Answers that could not be held, because held answers have used up the budget of octets. */
    overBound: 0,
  }
  /**
   * How long answers were held, in milliseconds, by what they waited for: the datapath, or an earlier answer to the same endpoint
   * about the same name. An answer that waited for both is in both.
   */
  readonly times = { datapath: new Histogram(), order: new Histogram() }
  readonly #options: ReleaseQueueOptions
  readonly #answers: HeldAnswers
  readonly #order: ReleaseOrder
  /** The revision that a slot waits for. 0: the slot waits only for an earlier answer. */
  readonly #needed: Float64Array
  readonly #since: Float64Array
  /** When a slot began to wait for what it waits for now. */
  readonly #stageSince: Float64Array
  /** 1 while the slot is in the batch that is being settled again. */
  readonly #isReady: Uint8Array
  readonly #batch = new AnswerBatch()
  readonly #message = new MessageView()
  readonly #timer: DueTimer

  constructor(options: ReleaseQueueOptions) {
    const { clock, inFlight, committer } = options
    const { capacity } = inFlight
    this.#options = options
    this.#answers = new HeldAnswers({ capacity })
    this.#order = new ReleaseOrder(capacity)
    this.#needed = new Float64Array(capacity)
    this.#since = new Float64Array(capacity)
    this.#stageSince = new Float64Array(capacity)
    this.#isReady = new Uint8Array(capacity)
    this.#timer = new DueTimer(clock, () => this.#settleOverdue())
    committer.onEnd(() => this.#settleReady())
  }

  /** The number of held answers. */
  get count(): number {
    return this.#order.count
  }

  /** How long the oldest held answer has waited, in milliseconds; 0 if none is held. */
  get oldestMs(): number {
    const { first } = this.#order
    return first < 0 ? 0 : this.#options.clock.now() - this.#since[first]!
  }

  stop(): void {
    this.#timer.stop()
  }

  isHeld(slot: number): boolean {
    return this.#order.has(slot)
  }

  /** Returns true if an earlier answer to the same endpoint about the same name is held. */
  isBehind(slot: number): boolean {
    if (this.#order.count === 0) return false
    const { inFlight } = this.#options
    return this.#order.isBehind(slot, inFlight.endpoints[slot]!, inFlight.nameHash(slot))
  }

  /**
   * Holds answer `index` of a batch, or continues to hold it. If `isPending` is true, until the revision that is desired now is in
   * force; otherwise only until earlier answers have left. Returns false, and does not hold it, if there is no room for its octets.
   */
  hold(slot: number, answers: AnswerBatch, index: number, isPending: boolean): boolean {
    const isHeld = this.#order.has(slot)
    if (!isHeld && !this.#take(slot, answers, index)) return false
    if (isHeld && isPending !== this.#needed[slot]! > 0) this.#endStage(slot)
    this.#needed[slot] = isPending ? this.#options.committer.desired : 0
    return true
  }

  /** Ends the hold of a slot. The next `hold` can overwrite the answer's octets. */
  end(slot: number): void {
    this.#endStage(slot)
    this.#order.remove(slot)
    this.#answers.drop(slot)
  }

  /** Counts the time for which a slot waited for the datapath, or for an earlier answer. */
  #endStage(slot: number): void {
    const now = this.#options.clock.now()
    const times = this.#needed[slot]! > 0 ? this.times.datapath : this.times.order
    times.add(now - this.#stageSince[slot]!)
    this.#stageSince[slot] = now
  }

  #take(slot: number, answers: AnswerBatch, index: number): boolean {
    const overTcp = answers.overTcp[index] === 1
    if (!this.#answers.put(slot, answers.view(index, this.#message), overTcp)) {
      this.counters.overBound++
      return false
    }
    const { inFlight } = this.#options
    this.#order.add(slot, inFlight.endpoints[slot]!, inFlight.nameHash(slot))
    const now = this.#options.clock.now()
    this.#since[slot] = now
    this.#stageSince[slot] = now
    this.counters.held++
    this.#timer.arm(now, now + this.#options.limitMs)
    return true
  }

  /** Settles the answers whose revision is in force, if no earlier answer of the same endpoint and name must wait. */
  #settleReady(): void {
    const { committer } = this.#options
    const inForce = committer.isUnderWay ? committer.revision : Infinity
    for (let at = this.#order.first; at >= 0; at = this.#order.after(at)) {
      if (this.#batch.full) this.#settle(false)
      const ahead = this.#order.ahead(at)
      const isNext = ahead < 0 || this.#isReady[ahead] === 1
      if (isNext && this.#needed[at]! <= inForce) this.#add(at)
    }
    this.#settle(false)
  }

  #settleOverdue(): void {
    const now = this.#options.clock.now()
    const { limitMs } = this.#options
    const before = this.count
    let at = this.#order.first
    for (; at >= 0 && this.#since[at]! + limitMs <= now; at = this.#order.after(at)) {
      if (this.#batch.full) this.#settle(true)
      this.counters.overdue++
      this.#add(at)
    }
    this.#settle(true)
    if (this.count < before) this.#settleReady()
    const { first } = this.#order
    if (first >= 0) this.#timer.arm(now, this.#since[first]! + limitMs)
  }

  #add(slot: number): void {
    const answers = this.#answers
    this.#isReady[slot] = 1
    const message = answers.view(slot, this.#message)
    this.#batch.add(slot, 0, answers.isOverTcp(slot), message, true)
  }

  #settle(isLast: boolean): void {
    const batch = this.#batch
    if (batch.count === 0) return
    try {
      this.#options.onSettle(batch, isLast)
    } finally {
      for (let i = 0; i < batch.count; i++) this.#isReady[batch.slots[i]!] = 0
      batch.clear()
    }
  }
}

/** One more than the largest hash of a name. A chain's key is endpoint * HASHES + hash. */
const HASHES = 2 ** 32

/**
 * ReleaseOrder keeps the order in which held answers arrived, and a chain for each endpoint and name. The answers of a chain
 * leave in order. All steps are O(1).
 */
class ReleaseOrder {
  /** All slots in one list, in order of arrival. */
  readonly #all: LinkedRows
  /** For each slot, the slot before it in its chain; NO_ROW: none. */
  readonly #ahead: Int32Array
  /** For each slot, the slot after it in its chain; NO_ROW: none. */
  readonly #behind: Int32Array
  readonly #keys: Float64Array
  readonly #isIn: Uint8Array
  /** Last slot of each chain. Names with equal hashes share a chain: an answer can then wait longer than needed, but the order holds. */
  readonly #tails = new Map<number, number>()
  #count = 0

  constructor(capacity: number) {
    this.#all = new LinkedRows(capacity, 1)
    this.#ahead = new Int32Array(capacity)
    this.#behind = new Int32Array(capacity)
    this.#keys = new Float64Array(capacity)
    this.#isIn = new Uint8Array(capacity)
  }

  get count(): number {
    return this.#count
  }

  /** The oldest slot; negative if there is none. */
  get first(): number {
    return this.#all.first(0)
  }

  /** Returns the slot that arrived next after `slot`; negative if `slot` is the newest. */
  after(slot: number): number {
    return this.#all.after(slot)
  }

  has(slot: number): boolean {
    return this.#isIn[slot] === 1
  }

  /** Returns true if another slot of this endpoint and name is before `slot`. `slot` itself can be held or not. */
  isBehind(slot: number, endpoint: number, nameHash: number): boolean {
    if (this.has(slot)) return this.#ahead[slot] !== NO_ROW
    return this.#tails.has(keyOf(endpoint, nameHash))
  }

  /** Returns the slot before `slot` in its chain; negative if `slot` is the first. */
  ahead(slot: number): number {
    return this.#ahead[slot]!
  }

  /** Adds a slot at the end of the list and of its chain. */
  add(slot: number, endpoint: number, nameHash: number): void {
    const key = keyOf(endpoint, nameHash)
    const tail = this.#tails.get(key) ?? NO_ROW
    this.#keys[slot] = key
    this.#ahead[slot] = tail
    this.#behind[slot] = NO_ROW
    if (tail !== NO_ROW) this.#behind[tail] = slot
    this.#tails.set(key, slot)
    this.#all.addLast(0, slot)
    this.#isIn[slot] = 1
    this.#count++
  }

  remove(slot: number): void {
    this.#all.remove(0, slot)
    const ahead = this.#ahead[slot]!
    const behind = this.#behind[slot]!
    if (ahead !== NO_ROW) this.#behind[ahead] = behind
    if (behind !== NO_ROW) this.#ahead[behind] = ahead
    else if (ahead !== NO_ROW) this.#tails.set(this.#keys[slot]!, ahead)
    else this.#tails.delete(this.#keys[slot]!)
    this.#isIn[slot] = 0
    this.#count--
  }
}

function keyOf(endpoint: number, nameHash: number): number {
  return endpoint * HASHES + nameHash
}
