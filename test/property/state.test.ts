// State on disk compared with a naive model: random records, images taken meanwhile, and the end of the process, a fault of the disk, or
// damage anywhere. A read returns everything that was flushed and nothing that was never written.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { ReadState } from '../../src/state/read-state.ts'
import { MemoryDisk } from '../support/models/memory-disk.ts'
import { pairsOf, StateNode } from '../support/nodes/state-files.ts'
import { labelsOf, StateRun, type Snapshot, type Step } from '../support/nodes/state-run.ts'
import { NEXT_READERS, toVersion2 } from '../support/nodes/state-format-2.ts'

const row = fc.integer({ min: 1, max: 8 })
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ kind: fc.constantFrom('pair', 'until', 'gone'), row }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('number') }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('document'),
      key: fc.integer({ min: 1, max: 3 }),
      text: fc.option(fc.integer({ min: 1, max: 99 }), { nil: undefined }),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constantFrom('flush', 'settle', 'begin-image', 'image-part', 'end-image'),
    }),
  },
)
const steps = fc.array(step, { minLength: 1, maxLength: 60 })

async function runAll(run: StateRun, disk: MemoryDisk, all: readonly Step[]): Promise<void> {
  for (const each of all) {
    if (disk.hasEnded) return
    await run.step(each)
  }
}

/** The state as text, in a fixed order. */
function textOf({ pairs, documents }: Snapshot): string {
  return [...pairs, ...documents]
    .map((entry) => entry.join(' = '))
    .toSorted((a, b) => (a < b ? -1 : 1))
    .join('\n')
}

function snapshotOf(read: ReadState): Snapshot {
  return { pairs: new Map(pairsOf(read)), documents: new Map(read.state?.sourceFiles) }
}

/** Checks that the state is that after one of the records since the last flush, with all numbers. */
function assertPrefix(read: ReadState, run: StateRun): void {
  const found = textOf(snapshotOf(read))
  const allowed = run.history.slice(run.flushed).map(textOf)
  assert.ok(allowed.includes(found), `${found}\nis none of\n${allowed.join('\n')}`)
  const numbers = new Map(read.state?.numbers.map(({ id, labels }) => [id, labels]))
  for (const id of run.numbers) assert.deepEqual(numbers.get(id), labelsOf(id))
}

/** Checks that every pair was written with its time, and the same for numbers and documents. */
function assertWritten(read: ReadState, runs: readonly StateRun[]): void {
  for (const [text, until] of pairsOf(read)) {
    assert.ok(
      runs.some(({ times }) => times.get(text)?.has(until) === true),
      `${text} until ${until} was never written`,
    )
  }
  for (const { id, labels } of read.state?.numbers ?? []) assert.deepEqual(labels, labelsOf(id))
  for (const [key, text] of read.state?.sourceFiles ?? []) {
    assert.ok(runs.some(({ history }) => history.some((each) => each.documents.get(key) === text)))
  }
}

test('StateStore keeps everything that was flushed, and numbers at once, when the process ends at any call', async () => {
  await fc.assert(
    fc.asyncProperty(steps, fc.nat(80), async (all, after) => {
      const [node, disk] = [new StateNode(), new MemoryDisk()]
      const run = new StateRun(node, disk)
      disk.upset({ after, kind: 'end' })
      await runAll(run, disk, all)
      const read = node.read(disk.copy())
      if (run.history.length > 1 || read.state !== undefined) assertPrefix(read, run)
      assert.ok(read.passedOver.every(({ isNormal }) => isNormal))
    }),
    { numRuns: 400 },
  )
})

test('StateStore writes what a flush asked for when an image begins during another write', async () => {
  const [node, disk] = [new StateNode(), new MemoryDisk()]
  const run = new StateRun(node, disk)
  await runAll(run, disk, [
    { kind: 'document', key: 1, text: 1 },
    { kind: 'flush' },
    { kind: 'pair', row: 1 },
    { kind: 'flush' },
    { kind: 'begin-image' },
    { kind: 'settle' },
  ])
  assert.equal(pairsOf(node.read(disk.copy())).length, 1)
})

test('StateStore keeps everything that was flushed, whichever call the process ends at', async () => {
  const change = (kind: 'pair' | 'until' | 'gone', at: number): Step => ({ kind, row: at })
  const do_ = (kind: 'flush' | 'settle' | 'begin-image' | 'image-part' | 'end-image'): Step => ({
    kind,
  })
  const kept: readonly Step[] = [do_('flush'), do_('settle')]
  const round: readonly Step[] = [
    ...[1, 2, 3, 4].map((each) => change('pair', each)),
    { kind: 'number' },
    ...kept,
    do_('begin-image'),
    change('until', 1),
    do_('image-part'),
    change('gone', 1),
    { kind: 'number' },
    change('pair', 1),
    do_('flush'),
    do_('end-image'),
    change('pair', 2),
    do_('settle'),
    ...kept,
  ]
  const all = [...round, ...round, ...round]
  let ends = 0
  for (let after = 0; ; after++) {
    const [node, disk] = [new StateNode(), new MemoryDisk()]
    const run = new StateRun(node, disk)
    disk.upset({ after, kind: 'end' })
    await runAll(run, disk, all)
    const read = node.read(disk.copy())
    assertPrefix(read, run)
    if (!disk.hasEnded) break
    ends++
  }
  assert.ok(ends > 40, `${ends} calls`)
})

test('StateStore of a chain of processes that end anywhere shows nothing that was never written', async () => {
  const lives = fc.array(fc.record({ all: steps, after: fc.nat(60) }), {
    minLength: 2,
    maxLength: 4,
  })
  await fc.assert(
    fc.asyncProperty(lives, async (each) => {
      const node = new StateNode()
      let disk = new MemoryDisk()
      const runs: StateRun[] = []
      for (const { all, after } of each) {
        const run = new StateRun(node, disk, (runs.at(-1)?.serial ?? 0) + 100)
        runs.push(run)
        disk.upset({ after, kind: 'end' })
        await runAll(run, disk, all)
        disk = disk.copy()
      }
      const read = node.read(disk)
      assertWritten(read, runs)
      const numbers = new Set(read.state?.numbers.map(({ id }) => id))
      const last = runs.at(-1)
      for (const id of last?.numbers ?? []) assert.ok(numbers.has(id), `number ${id}`)
    }),
    { numRuns: 200 },
  )
})

test('StateStore shows nothing that was never written when the disk refuses some calls, and recovers', async () => {
  const upset = fc.record({
    after: fc.nat(40),
    kind: fc.constantFrom('ENOSPC', 'EROFS', 'EIO', 'short'),
    times: fc.integer({ min: 1, max: 4 }),
  })
  await fc.assert(
    fc.asyncProperty(steps, upset, async (all, fault) => {
      const [node, disk] = [new StateNode(), new MemoryDisk()]
      const run = new StateRun(node, disk)
      disk.upset(fault)
      await runAll(run, disk, all)
      assertWritten(node.read(disk), [run])
      disk.upset(undefined)
      for (let round = 0; round < 2; round++) {
        node.clock.advance(120_000)
        const ways = ['end-image', 'settle', 'begin-image', 'end-image', 'settle'] as const
        for (const kind of ways) await run.step({ kind })
      }
      run.flushed = run.history.length - 1
      assertPrefix(node.read(disk), run)
      assert.equal(run.store.wantsImage, false)
    }),
    { numRuns: 200 },
  )
})

test('readState shows nothing that was never written from files that were cut or changed anywhere', async () => {
  const damage = fc.record({
    file: fc.nat(20),
    at: fc.nat(5000),
    kind: fc.constantFrom('cut', 'flip', 'drop', 'newer'),
  })
  await fc.assert(
    fc.asyncProperty(steps, fc.array(damage, { minLength: 1, maxLength: 3 }), async (all, hits) => {
      const [node, disk] = [new StateNode(), new MemoryDisk()]
      const run = new StateRun(node, disk)
      await runAll(run, disk, [...all, { kind: 'flush' }, { kind: 'settle' }])
      const touched = new Set<string>()
      for (const { file, at, kind } of hits) {
        const name = disk.names()[file % Math.max(1, disk.names().length)]
        if (name === undefined) return
        const octets = disk.get(name)
        if (octets.length === 0) continue
        const flipped = Uint8Array.from(octets)
        flipped[at % octets.length] = (flipped[at % octets.length] ?? 0) ^ (1 << (at % 8))
        if (kind === 'cut') disk.put(name, octets.slice(0, at % octets.length))
        else if (kind === 'flip') disk.put(name, flipped)
        else if (kind === 'drop') disk.files.delete(name)
        else if (!touched.has(name) && !name.endsWith('.new')) disk.put(name, toVersion2(octets))
        touched.add(name)
      }
      assertWritten(node.read(disk), [run])
      assertWritten(node.read(disk, NEXT_READERS), [run])
    }),
    { numRuns: 300 },
  )
})

test('readState shows nothing that was never written after the loss of power', async () => {
  await fc.assert(
    fc.asyncProperty(
      steps,
      fc.array(fc.nat(1000), { minLength: 8, maxLength: 8 }),
      async (all, keeps) => {
        const [node, disk] = [new StateNode(), new MemoryDisk()]
        const run = new StateRun(node, disk)
        await runAll(run, disk, all)
        let turn = 0
        const left = disk.withoutPower((octets) => ((keeps[turn++ % 8] ?? 0) * octets) / 1000)
        assertWritten(node.read(left), [run])
      },
    ),
    { numRuns: 200 },
  )
})
