import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { formatDuration, formatSize, parseDuration, parseSize } from '../../src/core/quantity.ts'

test('parseDuration accepts a whole number and one of five units', () => {
  const rows: readonly (readonly [string, number | undefined])[] = [
    ['0s', 0],
    ['100ms', 100],
    ['4s', 4_000],
    ['1m', 60_000],
    ['24h', 86_400_000],
    ['7d', 604_800_000],
    ['4', undefined],
    ['s', undefined],
    ['', undefined],
    ['-1s', undefined],
    ['1.5s', undefined],
    ['1 s', undefined],
    ['1S', undefined],
    ['1h30m', undefined],
    ['99999999999999d', undefined],
  ]
  for (const [text, ms] of rows) assert.equal(parseDuration(text), ms, text)
})

test('parseSize accepts a whole number and one of three units', () => {
  const rows: readonly (readonly [string, number | undefined])[] = [
    ['1KiB', 1_024],
    ['256MiB', 268_435_456],
    ['2GiB', 2_147_483_648],
    ['1MB', undefined],
    ['1mib', undefined],
    ['12', undefined],
    ['99999999999999GiB', undefined],
  ]
  for (const [text, octets] of rows) assert.equal(parseSize(text), octets, text)
})

test('formatDuration and formatSize use the largest unit that divides', () => {
  assert.equal(formatDuration(90_000), '90s')
  assert.equal(formatDuration(3_600_000), '1h')
  assert.equal(formatDuration(0), '0ms')
  assert.equal(formatSize(256 * 2 ** 20), '256MiB')
  assert.equal(formatSize(100), '100B')
})

test('parseDuration reads what formatDuration wrote', () => {
  fc.assert(
    fc.property(fc.nat(), (ms) => {
      assert.equal(parseDuration(formatDuration(ms)), ms)
    }),
  )
})
