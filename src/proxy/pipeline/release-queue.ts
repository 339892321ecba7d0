// Answers that wait until the datapath has confirmed what they teach. They keep the slots of their queries, so the bound
// on queries in flight holds them too. When the revision that one waits for is in force it is settled again as if it
// had just come: what it teaches is known by then, and what changed meanwhile (its endpoint, its policy, an expiry)
// counts. Answers to one endpoint about one name leave in the order in which they came; others are not delayed.
//
// An answer that waits longer than `dns.hold.limit` ends as `dns.hold.on-limit` says. Every held answer ends in exactly one
// `end`. Costs nothing while nothing is held, which is always so with a datapath that applies at once.

import type { Clock } from '../../core/clock.ts'
import { LinkedRows, NO_ROW } from '../../core/tables/linked-rows.ts'
import type { Committer } from '../../datapath/committer.ts'
import { AnswerBatch } from '../messages/answer-batch.ts'
import { DueTimer } from '../upstream/due-timer.ts'
import { MessageView } from '../messages/message-view.ts'
import { HeldAnswers } from './held-answers.ts'
import type { InFlightTable } from '../messages/in-flight.ts'

export interface ReleaseQueueOptions {
  readonly clock: Clock
  readonly inFlight: Pick<InFlightTable, 'capacity' | 'endpoints' | 'nameHash'>
  readonly committer: Pick<Committer, 'isUnderWay' | 'revision' | 'desired' | 'onEnd'>
  /** `dns.hold.limit`, in milliseconds. */
  readonly limitMs: number
  /** Settles held answers again: each `hold`s its slot once more or `end`s it; the last time it `end`s it. */
  readonly onSettle: (answers: AnswerBatch, isLast: boolean) => void
}

/** An answer about to be held: a batch, and the entry in it. */
interface AnswerColumns {
  readonly overTcp: Uint8Array
  octets(index: number): Uint8Array
  offset(index: number): number
  length(index: number): number
}

export class ReleaseQueue {
  readonly counters = {
    /** Answers that began to wait. */
    held: 0,
    /** Those that waited too long. */
    overdue: 0,
    /** Would have waited, but too many octets do. */
    overBound: 0,
  }
  readonly times = new HoldTimes()
  readonly #options: ReleaseQueueOptions
  readonly #answers: HeldAnswers
  readonly #order: ReleaseOrder
  /** The revision that a slot waits for; 0: none, only for its turn. */
  readonly #needed: Float64Array
  readonly #since: Float64Array
  /** 1 while the slot is in the batch that is settled again. */
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
    this.#isReady = new Uint8Array(capacity)
    this.#timer = new DueTimer(clock, () => this.#settleOverdue())
    committer.onEnd(() => this.#settleReady())
  }

  /** Answers that wait. */
  get count(): number {
    return this.#order.count
  }

  /** For how long the first one has waited, in milliseconds; 0 when none waits. */
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

  /** Whether an earlier answer to the same endpoint about the same name is held. */
  isBehind(slot: number): boolean {
    if (this.#order.count === 0) return false
    const { inFlight } = this.#options
    return this.#order.isBehind(slot, inFlight.endpoints[slot]!, inFlight.nameHash(slot))
  }

  /**
   * Holds entry `index` of a batch, or goes on holding it. `isPending`: until what is wanted now is in force, else for its
   * turn only. False when there is no room for its octets; then it isn't held.
   */
  hold(slot: number, answers: AnswerColumns, index: number, isPending: boolean): boolean {
    if (!this.#order.has(slot) && !this.#take(slot, answers, index)) return false
    this.#needed[slot] = isPending ? this.#options.committer.desired : 0
    return true
  }

  /** The wait of a held slot is over; its octets are gone with the next `hold`. */
  end(slot: number): void {
    this.times.add(this.#options.clock.now() - this.#since[slot]!)
    this.#order.remove(slot)
    this.#answers.drop(slot)
  }

  #take(slot: number, answers: AnswerColumns, index: number): boolean {
    const overTcp = answers.overTcp[index] === 1
    const octets = answers.octets(index)
    const offset = answers.offset(index)
    if (!this.#answers.put(slot, octets, offset, answers.length(index), overTcp)) {
      this.counters.overBound++
      return false
    }
    const { inFlight } = this.#options
    this.#order.add(slot, inFlight.endpoints[slot]!, inFlight.nameHash(slot))
    const now = this.#options.clock.now()
    this.#since[slot] = now
    this.counters.held++
    this.#timer.arm(now, now + this.#options.limitMs)
    return true
  }

  /** A commit ended: settles answers that waited for it, and those behind them whose own wait is over. */
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
    this.#message.set(answers.octets(slot), answers.offset(slot), answers.length(slot))
    this.#batch.add(slot, 0, answers.isOverTcp(slot), this.#message, true)
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

/** Above the largest hash of a name: an endpoint and a hash are one number. */
const HASHES = 2 ** 32

/**
 * Which held answers are before which: all of them in the order in which they came, and those to one endpoint about one
 * name in a chain of their own, so that none overtakes another of its chain. All steps are O(1).
 */
class ReleaseOrder {
  /** One list of all slots. */
  readonly #all: LinkedRows
  /** The slot whose end a slot waits for, and the slot that waits for its end; NO_ROW: none. */
  readonly #ahead: Int32Array
  readonly #behind: Int32Array
  readonly #keys: Float64Array
  readonly #isIn: Uint8Array
  /** Last slot of each chain. Names with equal hashes share a chain: they wait without need, in the right order. */
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

  /** The slot that came first; below 0 when there is none. */
  get first(): number {
    return this.#all.first(0)
  }

  /** The slot that came next; below 0 behind the last. */
  after(slot: number): number {
    return this.#all.after(slot)
  }

  has(slot: number): boolean {
    return this.#isIn[slot] === 1
  }

  /** Whether a slot of this endpoint and name, which may itself be in, has another before it. */
  isBehind(slot: number, endpoint: number, nameHash: number): boolean {
    if (this.has(slot)) return this.#ahead[slot] !== NO_ROW
    return this.#tails.has(keyOf(endpoint, nameHash))
  }

  /** The slot before it in its chain; below 0 when it's the first. */
  ahead(slot: number): number {
    return this.#ahead[slot]!
  }

  /** Adds a slot at the end. */
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

/** Milliseconds that an answer was held at most, for each count; the last count has no end. */
const STEPS_MS: readonly number[] = [1, 10, 100, 1000]

/** For how long answers were held, counted by powers of ten: enough to see whether the datapath keeps up. */
class HoldTimes {
  readonly #counts = new Float64Array(STEPS_MS.length + 1)
  #totalMs = 0

  /** All holds together, in milliseconds. */
  get totalMs(): number {
    return this.#totalMs
  }

  add(milliseconds: number): void {
    let step = 0
    while (step < STEPS_MS.length && milliseconds > (STEPS_MS[step] ?? 0)) step++
    this.#counts[step]!++
    this.#totalMs += milliseconds
  }

  /** `1ms` to how many were held that long at most and longer than the step before; the last is `longer`. */
  *readings(): Iterable<readonly [step: string, count: number]> {
    for (const [i, count] of this.#counts.entries()) {
      const step = STEPS_MS[i]
      yield [step === undefined ? 'longer' : `${step}ms`, count]
    }
  }
}
