import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Histogram, TIME_BOUNDS_MS } from '../../../src/core/tables/histogram.ts'

test('Histogram counts each value in the first bucket whose bound is not below it', () => {
  const rows: readonly (readonly [value: number, bucket: number, reason: string])[] = [
    [0, 0, 'the smallest value'],
    [1, 0, 'a bound belongs to its bucket'],
    [1.001, 1, 'just above a bound'],
    [10, 1, 'the last bound'],
    [10.5, 2, 'above the last bound'],
    [Infinity, 2, 'no bucket ends the scale'],
    [-1, 0, 'a clock that was set back counts as no time'],
    [NaN, 0, 'no number counts as no time'],
  ]
  for (const [value, bucket, reason] of rows) {
    const histogram = new Histogram([1, 10])
    histogram.add(value)
    const counts = [0, 1, 2].map((i) => (i === bucket ? 1 : 0))
    assert.deepEqual([...histogram.counts], counts, reason)
    assert.equal(histogram.sum, value > 0 ? value : 0, reason)
  }
})

test('Histogram agrees with a count of the sorted values (property)', () => {
  const values = fc.array(fc.double({ min: 0, max: 10_000, noNaN: true }))
  fc.assert(
    fc.property(values, (added) => {
      const histogram = new Histogram()
      for (const value of added) histogram.add(value)
      let upTo = 0
      for (const [i, bound] of TIME_BOUNDS_MS.entries()) {
        upTo += histogram.counts[i] ?? 0
        assert.equal(upTo, added.filter((value) => value <= bound).length, `up to ${bound}`)
      }
      assert.equal(upTo + (histogram.counts.at(-1) ?? 0), added.length)
    }),
  )
})
