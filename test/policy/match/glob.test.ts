import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { anchorsOf, globMatches, type Anchor } from '../../../src/policy/match/glob.ts'

const encoder = new TextEncoder()

function globMatchesText(glob: string, label: string): boolean {
  // Set between other octets, so that reading outside of either text shows.
  const g = encoder.encode(`*${glob}*`)
  const l = encoder.encode(`a${label}a`)
  return globMatches(g, 1, g.length - 2, l, 1, l.length - 2)
}

test('globMatches compares a whole label', () => {
  const rows: readonly (readonly [glob: string, label: string, expected: boolean, why: string])[] =
    [
      ['ab', 'ab', true, 'literal'],
      ['ab', 'abc', false, 'a literal is not a prefix'],
      ['a*', 'a', true, 'a star can be empty at the end'],
      ['*a', 'a', true, 'a star can be empty at the start'],
      ['a*b', 'ab', true, 'a star can be empty inside'],
      ['a*b', 'axxb', true, 'a star can be long'],
      ['a*b', 'axxbc', false, 'the end is anchored'],
      ['*a', 'ba-', false, 'the end is anchored behind a star'],
      ['a*ab', 'aab', true, 'the star is empty although a longer one was tried'],
      ['a*ab', 'ab', false, 'the same octet serves only once'],
      ['*ab*ab*', 'abab', true, 'pieces stand side by side'],
      ['*ab*ab*', 'abcb', false, 'the second piece is missing'],
      ['*aab', 'aaab', true, 'goes back after a false start'],
      ['*', '', true, 'a star matches nothing at all'],
      ['', '', true, 'empty against empty'],
      ['', 'a', false, 'an empty glob matches only an empty label'],
    ]
  for (const [glob, label, expected, why] of rows) {
    assert.equal(globMatchesText(glob, label), expected, `${glob} ${label}: ${why}`)
  }
})

test('globMatches equals a regular expression', () => {
  const glob = fc.string({ unit: fc.constantFrom('a', 'b', '*'), maxLength: 10 })
  const label = fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 12 })
  fc.assert(
    fc.property(glob, label, (g, l) => {
      assert.equal(globMatchesText(g, l), new RegExp(`^${g.replaceAll('*', '.*')}$`).test(l))
    }),
    { numRuns: 5_000 },
  )
})

test('globMatches takes time by the product of the lengths, not by their power', () => {
  // Each star of a backtracking matcher would multiply; here the last one alone moves.
  assert.equal(globMatchesText(`${'*a'.repeat(120)}*b`, 'a'.repeat(63)), false)
  assert.equal(globMatchesText(`${'*a'.repeat(30)}*b`, 'a'.repeat(63)), false)
})

test('anchorsOf gives what stands at the start, at the end, and each run of four octets inside', () => {
  const rows: readonly (readonly [glob: string, expected: readonly string[], why: string])[] = [
    ['api-*', ['prefix api-'], 'start'],
    ['*-eu1', ['suffix -eu1'], 'end'],
    ['*cdn*', ['inner cdn'], 'a short piece inside is taken whole'],
    ['*abcdef*', ['inner abcd', 'inner bcde', 'inner cdef'], 'a long piece inside'],
    ['abcdef*', ['prefix abcd', 'inner bcde', 'inner cdef'], 'a long start'],
    ['*abcdef', ['suffix cdef', 'inner abcd', 'inner bcde'], 'a long end'],
    ['a*bb*ccc', ['prefix a', 'inner bb', 'suffix ccc'], 'all three'],
    ['a*a', ['prefix a', 'suffix a'], 'start and end are told apart'],
    ['*', [], 'no literal piece'],
  ]
  for (const [glob, expected, why] of rows) {
    assert.deepEqual(anchorsOf(encoder.encode(glob)).map(formatAnchor), expected, `${glob}: ${why}`)
  }
})

function formatAnchor({ kind, octets }: Anchor): string {
  const side = ['prefix', 'suffix', 'inner'][kind >> 2]
  const length = (kind & 3) + 1
  const text = Array.from({ length }, (_, i) => (octets >>> (8 * (length - 1 - i))) & 0xff)
  return `${side} ${String.fromCharCode(...text)}`
}
