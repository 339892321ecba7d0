// The order and the end of held answers, over a committer that the test controls: the revision that each answer needs, its turn, deadlines,
// and the bound on long answers.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { revision, type Revision } from '../../../src/core/ids.ts'
import type { Histogram } from '../../../src/core/tables/histogram.ts'
import { MessageView } from '../../../src/dns/message-view.ts'
import { AnswerBatch } from '../../../src/proxy/messages/answer-batch.ts'
import { ReleaseQueue } from '../../../src/proxy/pipeline/release-queue.ts'
import { FakeClock } from '../../support/fake-clock.ts'

const LIMIT_MS = 100
const CAPACITY = 1_100
/** The number of longest messages (65,535 octets) that fit into the budget of 64 MiB. */
const LONGEST = 65_535
const LONGEST_MAX = 1_024

class Bench {
  readonly clock = new FakeClock()
  readonly queue: ReleaseQueue
  readonly endpoints = new Uint32Array(CAPACITY).fill(1)
  /** The hash of the name in each slot. */
  readonly names = new Uint32Array(CAPACITY)
  /** Slots that are still pending when they are settled again. */
  readonly pending = new Set<number>()
  /** The ends, in order: `7` is released, `7!` ended at its limit while pending. */
  readonly ended: string[] = []
  readonly octets = new Map<number, number>()
  readonly committer: { isUnderWay: boolean; revision: Revision; desired: Revision } = {
    isUnderWay: true,
    revision: revision(1),
    desired: revision(2),
  }
  #onEnd: () => void = () => undefined

  constructor() {
    const { clock, endpoints, names } = this
    const onEnd = (listener: () => void): void => void (this.#onEnd = listener)
    const committer = Object.assign(this.committer, { onEnd })
    this.queue = new ReleaseQueue({
      clock,
      inFlight: { capacity: CAPACITY, endpoints, nameHash: (slot) => names[slot] ?? 0 },
      committer,
      limitMs: LIMIT_MS,
      onSettle: (answers, isLast) => this.#settle(answers, isLast),
    })
  }

  /** Holds an answer. Each of its octets is the number of its slot. */
  hold(slot: number, isPending = true, length = 40): boolean {
    const answer = new Uint8Array(length + 7).fill(slot, 7)
    const one = new AnswerBatch(1)
    one.add(slot, 0, slot % 2 === 1, new MessageView().set(answer, 7, length), true)
    if (isPending) this.pending.add(slot)
    const held = this.queue.hold(slot, one, 0, isPending)
    answer.fill(0)
    return held
  }

  /** Ends a commit. */
  reach(number: number): void {
    this.committer.revision = revision(number)
    this.#onEnd()
  }

  #settle(answers: AnswerBatch, isLast: boolean): void {
    for (let i = 0; i < answers.count; i++) {
      const slot = answers.slots[i] ?? 0
      const message = answers.view(i, new MessageView()).copy()
      assert.ok(
        message.every((octet) => octet === slot % 256),
        `octets of ${slot}`,
      )
      assert.equal(answers.overTcp[i], slot % 2)
      this.octets.set(slot, message.length)
      const isPending = this.pending.has(slot)
      const mustWait = !isLast && (isPending || this.queue.isBehind(slot))
      if (mustWait && this.queue.hold(slot, answers, i, isPending)) continue
      this.ended.push(isPending ? `${slot}!` : `${slot}`)
      this.queue.end(slot)
    }
  }
}

/** A bench whose slots 0, 1, ... have these names. */
function mkBench(...names: readonly number[]): Bench {
  const bench = new Bench()
  bench.names.set(names)
  return bench
}

test('ReleaseQueue settles an answer again when the revision that it waits for is in force', () => {
  const bench = mkBench(10, 11)
  bench.hold(0)
  bench.committer.desired = revision(3)
  bench.hold(1)
  bench.pending.clear()
  bench.reach(2)
  assert.deepEqual(bench.ended, ['0'])
  bench.reach(3)
  assert.deepEqual(bench.ended, ['0', '1'])
  assert.deepEqual([bench.queue.count, bench.queue.counters.held], [0, 2])
})

test('ReleaseQueue holds what is still pending until the present revision', () => {
  const bench = mkBench(10)
  bench.hold(0)
  bench.committer.desired = revision(5)
  bench.reach(2)
  assert.deepEqual([bench.ended, bench.queue.isHeld(0)], [[], true])
  bench.pending.clear()
  bench.reach(4)
  assert.deepEqual(bench.ended, [], 'waits for revision 5')
  bench.committer.isUnderWay = false
  bench.reach(4)
  assert.deepEqual(bench.ended, ['0'], 'or for an idle datapath')
})

test('ReleaseQueue keeps answers about one name to one endpoint in order, and does not delay others', () => {
  const bench = mkBench(10, 10, 11, 10)
  bench.endpoints[3] = 2
  bench.hold(0)
  assert.deepEqual(
    [1, 2, 3].map((slot) => bench.queue.isBehind(slot)),
    [true, false, false],
  )
  bench.hold(1, false)
  bench.hold(2)
  bench.pending.delete(2)
  bench.reach(2)
  assert.deepEqual(bench.ended, ['2'], 'the first answer about the name is still pending')
  bench.pending.clear()
  bench.committer.desired = revision(2)
  bench.reach(3)
  assert.deepEqual(bench.ended, ['2', '0', '1'])
  assert.equal(bench.queue.isBehind(1), false)
})

test('ReleaseQueue ends an answer at its limit, and then releases the answers behind it', () => {
  const bench = mkBench(10, 10, 11)
  bench.hold(0)
  bench.clock.advance(60)
  bench.hold(1, false)
  bench.hold(2)
  bench.clock.advance(60)
  assert.deepEqual(bench.ended, ['0!', '1'])
  assert.equal(bench.queue.counters.overdue, 1)
  bench.clock.advance(60)
  assert.deepEqual(bench.ended, ['0!', '1', '2!'])
  assert.equal(bench.queue.count, 0)
  bench.clock.advance(1000)
  assert.equal(bench.queue.counters.overdue, 2)
})

test('ReleaseQueue counts how long answers were held', () => {
  const bench = mkBench(10, 11)
  bench.hold(0)
  bench.clock.advance(5)
  assert.equal(bench.queue.oldestMs, 5)
  bench.pending.clear()
  bench.reach(2)
  bench.hold(1)
  bench.clock.advance(200)
  const { datapath, order } = bench.queue.times
  assert.deepEqual(countsOf(datapath), new Map([[5, 1], [250, 1]])) // prettier-ignore
  assert.ok(datapath.sum >= 105 && datapath.sum < 130, `${datapath.sum} ms`)
  assert.equal(countsOf(order).size, 0)
})

test('ReleaseQueue counts waits for the datapath and for an earlier answer apart', () => {
  const bench = mkBench(10, 10)
  bench.hold(0)
  bench.hold(1, false)
  bench.clock.advance(20)
  bench.pending.clear()
  // The second answer needs the datapath, too, when its turn comes.
  bench.pending.add(1)
  bench.committer.desired = revision(3)
  bench.reach(2)
  assert.deepEqual(bench.ended, ['0'])
  bench.clock.advance(50)
  bench.pending.clear()
  bench.reach(3)
  assert.deepEqual(bench.ended, ['0', '1'])
  const { datapath, order } = bench.queue.times
  assert.deepEqual(countsOf(datapath), new Map([[25, 1], [50, 1]])) // prettier-ignore
  assert.deepEqual(countsOf(order), new Map([[25, 1]]))
})

/** The bounds and counts of the buckets that are not empty. */
function countsOf({ bounds, counts }: Histogram): ReadonlyMap<number, number> {
  const buckets = [...bounds, Infinity].map((bound, i) => [bound, counts[i] ?? 0] as const)
  return new Map(buckets.filter(([, count]) => count > 0))
}

test('ReleaseQueue holds more than a batch, in order', () => {
  const bench = new Bench()
  const slots = Array.from({ length: CAPACITY }, (_, slot) => slot)
  for (const slot of slots) {
    bench.names[slot] = slot % 100
    bench.hold(slot)
  }
  bench.pending.clear()
  bench.reach(2)
  assert.deepEqual(bench.ended, slots.map(String))
})

test('ReleaseQueue holds long answers within a budget, refuses more, and frees the budget', () => {
  const bench = new Bench()
  bench.hold(0, true, 512)
  let held = 0
  while (held < CAPACITY - 1 && bench.hold(held + 1, true, LONGEST)) held++
  assert.equal(held, LONGEST_MAX)
  assert.equal(bench.queue.counters.overBound, 1)
  assert.equal(bench.queue.isHeld(held + 1), false)
  assert.equal(bench.hold(CAPACITY - 1, true, 512), true, 'short answers have room of their own')
  bench.pending.clear()
  bench.reach(2)
  assert.equal(bench.queue.count, 0)
  assert.deepEqual([bench.octets.get(0), bench.octets.get(1)], [512, LONGEST])
  assert.equal(bench.hold(5, true, LONGEST), true)
})
