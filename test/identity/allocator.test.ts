import assert from 'node:assert/strict'
import { test } from 'node:test'
import { identity } from '../../src/core/ids.ts'
import { LabelSets } from '../../src/core/labels.ts'
import { Allocator } from '../../src/identity/allocator.ts'
import { FIRST_LOCAL, LAST_LOCAL } from '../../src/identity/reserved.ts'
import { FakeClock } from '../support/fake-clock.ts'

const DELAY_MS = 600_000

function mkAllocator(
  options: {
    carried?: readonly number[]
    dynamicMax?: number
    dynamicPerEndpointMax?: number
  } = {},
) {
  const sets = new LabelSets()
  const clock = new FakeClock()
  const allocator = new Allocator({
    labelSets: sets,
    clock,
    carried: new Set((options.carried ?? []).map(identity)),
    dynamicMax: options.dynamicMax ?? 100,
    dynamicPerEndpointMax: options.dynamicPerEndpointMax ?? 100,
  })
  const acquire = (...texts: readonly string[]) => allocator.acquire(sets.intern(texts))
  return { sets, clock, allocator, acquire }
}

test('Allocator gives equal sets one number from 2^24 up, and counts the references', () => {
  const { allocator, acquire, sets } = mkAllocator()
  const a = acquire('fqdn:a')
  const b = acquire('fqdn:b')
  assert.deepEqual(
    [a, b],
    [
      { identity: FIRST_LOCAL, degraded: false },
      { identity: FIRST_LOCAL + 1, degraded: false },
    ],
  )
  assert.equal(acquire('fqdn:a').identity, a.identity)
  assert.deepEqual([allocator.inUse, allocator.allocations, allocator.dynamicInUse], [2, 2, 2])
  allocator.release(a.identity)
  assert.equal(allocator.find(sets.intern(['fqdn:a'])), a.identity, 'one reference is left')
  allocator.release(a.identity)
  assert.equal(allocator.find(sets.intern(['fqdn:a'])), undefined)
  assert.deepEqual([allocator.inUse, allocator.dynamicInUse], [1, 1])
  assert.throws(() => allocator.release(a.identity), /is referenced/)
  assert.throws(() => allocator.retain(a.identity), /is in use/)
})

test('Allocator keeps a number for its set during the reuse delay, and frees it after', () => {
  const { allocator, acquire, clock, sets } = mkAllocator()
  const { identity: id } = acquire('fqdn:a')
  allocator.release(id)
  clock.advance(DELAY_MS - 1)
  allocator.sweep()
  sets.collect()
  assert.equal(acquire('fqdn:a').identity, id, 'the same number within the delay')
  allocator.release(id)
  allocator.takeChanges()
  clock.advance(DELAY_MS)
  allocator.sweep()
  sets.collect()
  assert.equal(allocator.setOf(id), undefined)
  assert.equal(sets.size, 1, 'its label sets are free')
  assert.notEqual(acquire('fqdn:a').identity, id, 'numbers are reused only after a whole round')
})

test('Allocator.takeChanges reports each allocation and each release once', () => {
  const { allocator, acquire } = mkAllocator()
  const { identity: a } = acquire('fqdn:a')
  const { identity: b } = acquire('fqdn:b')
  allocator.release(b)
  const took = allocator.takeChanges()
  assert.deepEqual(
    took,
    { allocated: [a, b], fresh: [a], unused: [b] },
    'b was allocated and released between two reports',
  )
  const nothing = { allocated: [], fresh: [], unused: [] }
  assert.equal(allocator.hasChanges, false)
  assert.deepEqual(allocator.takeChanges(), nothing)
  allocator.release(a)
  acquire('fqdn:a')
  assert.deepEqual(allocator.takeChanges(), nothing, 'released and allocated again')
  acquire('fqdn:b')
  assert.equal(allocator.hasChanges, true)
  assert.deepEqual(allocator.takeChanges(), { ...nothing, fresh: [b] })
})

test('Allocator.sweep keeps a number until its release was reported', () => {
  const { allocator, acquire, clock } = mkAllocator()
  const { identity: id } = acquire('fqdn:a')
  allocator.takeChanges()
  allocator.release(id)
  clock.advance(DELAY_MS * 2)
  allocator.sweep()
  assert.notEqual(allocator.setOf(id), undefined, 'the selectors still list it')
  assert.deepEqual(allocator.takeChanges().unused, [id])
  allocator.sweep()
  assert.equal(allocator.setOf(id), undefined)
})

test('Allocator never gives a number that the datapath had at the start, not even after a round', () => {
  const rows: readonly (readonly [carried: readonly number[], first: number, reason: string])[] = [
    [[], FIRST_LOCAL, 'no number in use'],
    [[1, 9], FIRST_LOCAL, 'reserved numbers only'],
    [[FIRST_LOCAL + 5], FIRST_LOCAL + 6, 'above the highest'],
    [[LAST_LOCAL], FIRST_LOCAL, 'the highest number: from the start'],
    [[LAST_LOCAL, FIRST_LOCAL], FIRST_LOCAL + 1, 'and past numbers in use'],
  ]
  for (const [carried, first, reason] of rows) {
    assert.equal(mkAllocator({ carried }).acquire('fqdn:a').identity, first, reason)
  }
  const { acquire } = mkAllocator({ carried: [LAST_LOCAL - 1, FIRST_LOCAL] })
  const numbers = ['fqdn:a', 'fqdn:b'].map((text) => acquire(text).identity)
  assert.deepEqual(numbers, [LAST_LOCAL, FIRST_LOCAL + 1])
})

test('Allocator at the bound of dynamic identities falls back only to fewer fqdn labels', () => {
  const rows: readonly (readonly [
    known: readonly (readonly string[])[],
    wanted: readonly string[],
    expected: readonly string[],
    reason: string,
  ])[] = [
    [[['w', 'fqdn:a']], ['w', 'fqdn:a', 'fqdn:b'], ['fqdn:a', 'w'], 'only fqdn:b is missing'],
    [[['w', 'fqdn:c']], ['w', 'fqdn:a'], ['w'], 'fqdn:c was not wanted'],
    [[['w', 'k8s:x=1', 'fqdn:a']], ['w', 'fqdn:a', 'fqdn:b'], ['w'], 'k8s:x was not wanted'],
    [[['fqdn:a']], ['w', 'fqdn:a', 'fqdn:b'], ['w'], 'w must not be missing'],
    [
      [
        ['w', 'fqdn:a'],
        ['w', 'fqdn:a', 'fqdn:b'],
      ],
      ['w', 'fqdn:a', 'fqdn:b', 'fqdn:c'],
      ['fqdn:a', 'fqdn:b', 'w'],
      'the largest',
    ],
    [
      [
        ['w', 'fqdn:b'],
        ['w', 'fqdn:a'],
      ],
      ['w', 'fqdn:a', 'fqdn:b'],
      ['fqdn:b', 'w'],
      'a tie: the lowest number',
    ],
    [
      [
        ['w', 'cidr:10.0.0.0/8', 'fqdn:a'],
        ['w', 'fqdn:a'],
      ],
      ['w', 'cidr:10.0.0.0/8', 'fqdn:a', 'fqdn:b'],
      ['cidr:10.0.0.0/8', 'fqdn:a', 'w'],
      'the cidr stays',
    ],
  ]
  for (const [known, wanted, expected, reason] of rows) {
    const { allocator, acquire, sets } = mkAllocator({ dynamicMax: known.length })
    for (const texts of known) acquire(...texts)
    const { identity: id, degraded } = acquire(...wanted)
    assert.deepEqual(sets.format(allocator.setOf(id) ?? 0), expected, reason)
    assert.equal(degraded, true)
    assert.equal(allocator.fallbacks, 1)
  }
})

test('Allocator does not count sets without fqdn labels and pre-allocated ones as dynamic', () => {
  const { allocator, acquire, sets } = mkAllocator({ dynamicMax: 1 })
  const spare = allocator.preallocate(sets.intern(['w', 'fqdn:a']))
  assert.equal(allocator.isSpare(spare), true)
  assert.deepEqual(acquire('w', 'fqdn:a'), { identity: spare, degraded: false })
  assert.equal(allocator.isSpare(spare), false, 'an address uses it now')
  assert.equal(acquire('w', 'cidr:10.0.0.0/8').degraded, false)
  assert.equal(acquire('w', 'fqdn:b').degraded, false)
  assert.equal(allocator.dynamicInUse, 1)
  assert.equal(acquire('w', 'fqdn:c').degraded, true)
  allocator.preallocate(sets.intern(['w', 'fqdn:b']))
  assert.equal(allocator.dynamicInUse, 0, 'a foreseen identity is static')
  assert.equal(acquire('w', 'fqdn:d').degraded, false)
})

test('Allocator counts a set as dynamic again when configuration no longer foresees it', () => {
  const { allocator, acquire, sets } = mkAllocator({ dynamicMax: 1 })
  const id = allocator.preallocate(sets.intern(['w', 'fqdn:a']))
  acquire('w', 'fqdn:a')
  allocator.unpreallocate(id)
  assert.equal(allocator.dynamicInUse, 1)
  allocator.release(id)
  assert.equal(allocator.dynamicInUse, 0)
  acquire('w', 'fqdn:b')
  assert.equal(acquire('w', 'fqdn:a').degraded, true, 'its number waits, but the budget is used up')
})

test('Allocator counts sets whose number waits for its delay against the bound', () => {
  const { allocator, acquire } = mkAllocator({ dynamicMax: 2 })
  for (const text of ['fqdn:a', 'fqdn:b', 'fqdn:c', 'fqdn:d']) {
    allocator.release(acquire('w', text).identity)
  }
  const outcomes = ['fqdn:a', 'fqdn:b', 'fqdn:c', 'fqdn:d'].map(
    (text) => acquire('w', text).degraded,
  )
  assert.deepEqual(outcomes, [false, false, true, true])
  assert.equal(allocator.dynamicInUse, 2)
})

test('Allocator applies the bound of each endpoint separately', () => {
  const { allocator, sets } = mkAllocator({ dynamicPerEndpointMax: 2 })
  const acquire = (text: string, asker: number) => allocator.acquire(sets.intern([text]), asker)
  const first = ['fqdn:a', 'fqdn:b', 'fqdn:c'].map((text) => acquire(text, 1))
  assert.deepEqual(
    first.map(({ degraded }) => degraded),
    [false, false, true],
  )
  assert.equal(acquire('fqdn:c', 2).degraded, false, 'another endpoint has its own')
  assert.deepEqual([...allocator.budget.exhausted()], [1])
  allocator.release(first[0]?.identity ?? identity(0))
  assert.equal(acquire('fqdn:d', 1).degraded, false, 'a released number is free')
  assert.equal(acquire('fqdn:e', 1).degraded, true)
})

test('Allocator.views shows only identities in use', () => {
  const { allocator, acquire, sets } = mkAllocator()
  const { identity: a } = acquire('fqdn:a')
  allocator.release(acquire('fqdn:b').identity)
  const set = sets.intern(['fqdn:a'])
  assert.deepEqual([...allocator.views()], [{ id: a, set, references: 1, preallocated: false }])
})
