import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'node:test'
import { IdChains } from '../../../src/core/tables/id-chains.ts'
import {
  type Anchor,
  anchorsOf,
  GlobBuckets,
  globMatches,
  INNER,
  SUFFIX,
} from '../../../src/policy/match/globs.ts'
import {
  childHashOf,
  GLOB,
  LabelTrie,
  ROOT,
  ROOT_HASH,
} from '../../../src/policy/match/label-trie.ts'

const encoder = new TextEncoder()

function globMatchesText(glob: string, label: string): boolean {
  // The texts lie between other octets, so a read outside of them is noticed.
  const g = Uint8Array.of(0x2a, ...labelOf(glob), 0x2a)
  const l = Uint8Array.of(0x61, ...labelOf(label), 0x61)
  return globMatches(g, 1, l, 1)
}

/** A label in wire form. */
function labelOf(text: string): Uint8Array {
  const octets = encoder.encode(text)
  return Uint8Array.of(octets.length, ...octets)
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

test('globMatches needs time by the product of the lengths, not by a power', () => {
  // Each star of a backtracking matcher would multiply the time. Here only the last one moves.
  assert.equal(globMatchesText(`${'*a'.repeat(120)}*b`, 'a'.repeat(63)), false)
  assert.equal(globMatchesText(`${'*a'.repeat(30)}*b`, 'a'.repeat(63)), false)
})

test('anchorsOf returns the literal start, the literal end, and each run of four octets inside', () => {
  const rows: readonly (readonly [glob: string, expected: readonly string[], why: string])[] = [
    ['api-*', ['prefix api-'], 'start'],
    ['*-eu1', ['suffix -eu1'], 'end'],
    ['*cdn*', ['inner cdn'], 'a short piece inside is taken whole'],
    ['*abcdef*', ['inner abcd', 'inner bcde', 'inner cdef'], 'a long piece inside'],
    ['abcdef*', ['prefix abcd', 'inner bcde', 'inner cdef'], 'a long start'],
    ['*abcdef', ['suffix cdef', 'inner abcd', 'inner bcde'], 'a long end'],
    ['a*bb*ccc', ['prefix a', 'inner bb', 'suffix ccc'], 'all three'],
    ['a*a', ['prefix a', 'suffix a'], 'start and end differ'],
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

interface Fixture {
  readonly trie: LabelTrie
  readonly buckets: GlobBuckets
  readonly rows: ReadonlyMap<string, number>
}

/** The globs as children of the root, in order. */
function mkGlobs(globs: readonly string[]): Fixture {
  const trie = new LabelTrie()
  const buckets = new GlobBuckets({ trie, chains: new IdChains() })
  const rows = new Map<string, number>()
  for (const glob of globs) {
    const label = labelOf(glob)
    const row = trie.make(ROOT, GLOB, childHashOf(ROOT_HASH, GLOB, label, 0), label, 0)
    buckets.hang(ROOT, row)
    rows.set(glob, row)
  }
  return { trie, buckets, rows }
}

/** The number of globs in each bucket that one of the globs could use. */
function loads({ buckets, rows }: Fixture): readonly number[] {
  const found = new Map<string, number>()
  for (const glob of rows.keys()) {
    for (const anchor of anchorsOf(encoder.encode(glob))) {
      found.set(`${anchor.kind} ${anchor.octets}`, buckets.load(ROOT, anchor))
    }
  }
  return [...found.values()]
}

test('GlobBuckets.hang spreads globs by a piece that they do not share', () => {
  const numbers = Array.from({ length: 1_000 }, (_, i) => String(i).padStart(4, '0'))
  const rows: readonly (readonly [form: (n: string) => string, most: number, why: string])[] = [
    [(n) => `${n}-*-eu`, 5, 'ends are shared by all, starts differ'],
    [(n) => `svc-*-${n}`, 5, 'starts are shared by all, ends differ'],
    [(n) => `svc-*${n}*-eu`, 5, 'start and end are shared by all, the inside differs'],
    [(n) => `registry-mirror-${n}*`, 5, 'starts differ only behind the 16th octet'],
    [(n) => `*${n}-registry-mirror`, 5, 'ends differ only before the 16th octet'],
    [(n) => `*-mirror-${n}-cache-*`, 5, 'neither start nor end, and shared on both sides'],
  ]
  for (const [form, most, why] of rows) {
    const counts = loads(mkGlobs(numbers.map(form)))
    assert.equal(
      counts.reduce((sum, count) => sum + count, 0),
      1_000,
      `each is in one bucket: ${why}`,
    )
    assert.ok(Math.max(...counts) <= most, `${Math.max(...counts)} in one bucket: ${why}`)
  }
})

test('GlobBuckets.unhang clears the bit of a kind of anchor with its last bucket', () => {
  const { trie, buckets, rows } = mkGlobs(['*ab', '*cd', '*x*'])
  const suffix2 = 1 << (SUFFIX * 4 + 1)
  const inner1 = 1 << (INNER * 4)
  const steps: readonly (readonly [glob: string, bits: number, why: string])[] = [
    ['*ab', suffix2 | inner1, 'another end of two octets is left'],
    ['*x*', suffix2, 'the only inner piece is gone'],
    ['*cd', 0, 'nothing is left'],
  ]
  assert.equal(trie.anchors(ROOT), suffix2 | inner1)
  for (const [glob, bits, why] of steps) {
    buckets.unhang(ROOT, rows.get(glob) ?? assert.fail(glob))
    assert.equal(trie.anchors(ROOT), bits, why)
    const [anchor] = anchorsOf(encoder.encode(glob))
    assert.ok(anchor !== undefined)
    assert.equal(buckets.globs(ROOT, anchor.kind, anchor.octets), 0, `${glob} is no longer found`)
  }
})

test('GlobBuckets.unhang refuses a glob that is in none of its buckets', () => {
  const { buckets, rows } = mkGlobs(['*ab*'])
  const row = rows.get('*ab*') ?? assert.fail()
  buckets.unhang(ROOT, row)
  assert.throws(() => buckets.unhang(ROOT, row), /Invariant broken/)
})

test('GlobBuckets keeps the buckets of nodes apart', () => {
  const { buckets } = mkGlobs(['ab*'])
  const [anchor] = anchorsOf(encoder.encode('ab*'))
  assert.ok(anchor !== undefined)
  assert.notEqual(buckets.globs(ROOT, anchor.kind, anchor.octets), 0)
  assert.equal(buckets.globs(ROOT + 1, anchor.kind, anchor.octets), 0, 'another node')
  assert.equal(buckets.globs(ROOT, anchor.kind + 1, anchor.octets), 0, 'another kind')
  assert.equal(buckets.globs(ROOT, anchor.kind, anchor.octets + 1), 0, 'other octets')
})
