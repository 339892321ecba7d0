import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { PatternIndex } from '../../src/policy/match/pattern-index.ts'
import type { Pattern } from '../../src/policy/match/pattern.ts'
import { mkNames, mkSelectors } from '../bench/support/selectors.ts'
import { idsOf, mkIndex, mkName, mkPattern, naiveIds } from '../support/models/pattern-index.ts'
import { Random } from '../support/models/random.ts'

// Few octets and few labels, so that patterns overlap, match, and share suffixes and buckets.
const literalArb = fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 1, maxLength: 3 })
const globArb = fc.string({ unit: fc.constantFrom('a', 'b', '*'), minLength: 1, maxLength: 6 })
/** Longer than a row of the tree, and equal in its first 28 octets. */
const LONG = 'b'.repeat(28)
const labelArb = fc.oneof(
  { weight: 3, arbitrary: literalArb },
  { weight: 2, arbitrary: globArb },
  { weight: 1, arbitrary: fc.constant('*') },
  { weight: 1, arbitrary: fc.constantFrom(LONG, `${LONG}a`, `${LONG}b`, `${LONG}*`, `*${LONG}ab`) },
)
const patternArb = fc
  .tuple(fc.constantFrom('', '', '**.'), fc.array(labelArb, { minLength: 1, maxLength: 4 }))
  .map(([deep, labels]) => mkPattern(deep + labels.join('.')))
const nameArb = fc
  .array(
    fc.oneof(
      {
        weight: 12,
        arbitrary: fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 1, maxLength: 6 }),
      },
      { weight: 1, arbitrary: fc.constantFrom(LONG, `${LONG}a`, `${LONG}ab`) },
      { weight: 1, arbitrary: fc.constant('a\\042') },
    ),
    { maxLength: 5 },
  )
  .map((labels) => mkName(labels.join('.')))

test('PatternIndex.match equals the naive matcher over all patterns', () => {
  fc.assert(
    fc.property(
      fc.array(patternArb, { maxLength: 60 }),
      fc.array(nameArb, { minLength: 1, maxLength: 8 }),
      (list, names) => {
        const index = mkIndex(list)
        const patterns = new Map(list.map((pattern, id) => [id, pattern]))
        for (const name of names) assert.deepEqual(idsOf(index, name), naiveIds(patterns, name))
      },
    ),
    { numRuns: 3_000 },
  )
})

test('PatternIndex equals the naive matcher after any adds and removes, and ends empty', () => {
  const step = fc.record({ pattern: patternArb, remove: fc.boolean(), which: fc.nat() })
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 150 }),
      fc.array(nameArb, { maxLength: 8 }),
      (steps, names) => {
        const index = new PatternIndex()
        const held = new Map<number, Pattern>()
        const removeNth = (which: number) => {
          const [id, pattern] = [...held][which % held.size] ?? []
          if (id === undefined || pattern === undefined) return
          index.remove(pattern, id)
          held.delete(id)
        }
        steps.forEach(({ pattern, remove, which }, id) => {
          if (remove) {
            removeNth(which)
          } else {
            index.add(pattern, id)
            held.set(id, pattern)
          }
        })
        assert.equal(index.size, held.size)
        for (const name of names) assert.deepEqual(idsOf(index, name), naiveIds(held, name))
        while (held.size > 0) removeNth(0)
        for (const name of names) assert.deepEqual(idsOf(index, name), [])
      },
    ),
    { numRuns: 1_000 },
  )
})

test('PatternIndex.match equals the naive matcher over thousands of patterns', () => {
  const random = new Random(7)
  const patterns = mkSelectors(random, 4_000)
  const index = mkIndex(patterns)
  const names = mkNames(random, { selectors: patterns, count: 150, matching: 70 })
  const held = new Map(patterns.map((pattern, id) => [id, pattern]))
  const expected = names.map((name) => naiveIds(held, name))
  assert.ok(expected.filter((ids) => ids.length > 0).length > 90, 'most names match something')
  names.forEach((name, i) => assert.deepEqual(idsOf(index, name), expected[i]))
})
