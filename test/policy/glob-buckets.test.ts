import assert from 'node:assert/strict'
import { test } from 'node:test'
import { anchorsOf, INNER, SUFFIX } from '../../src/policy/glob.ts'
import { GlobBuckets } from '../../src/policy/glob-buckets.ts'
import { IdChains } from '../../src/policy/id-chains.ts'
import { BUCKET, GLOB, LabelTrie, ROOT } from '../../src/policy/label-trie.ts'
import { labelHash } from '../../src/policy/name-labels.ts'

const encoder = new TextEncoder()

interface Fixture {
  readonly trie: LabelTrie
  readonly buckets: GlobBuckets
  readonly rows: Map<string, number>
}

/** The globs as children of the root, in order. */
function mkGlobs(globs: readonly string[]): Fixture {
  const trie = new LabelTrie()
  const buckets = new GlobBuckets({ trie, chains: new IdChains() })
  const rows = new Map<string, number>()
  for (const glob of globs) {
    const octets = encoder.encode(glob)
    const hash = labelHash(octets, 0, octets.length)
    const row = trie.make(ROOT, GLOB, hash, octets, 0, octets.length)
    buckets.hang(ROOT, row)
    rows.set(glob, row)
  }
  return { trie, buckets, rows }
}

/** How many globs are in each bucket that any of the globs could be in. */
function loads(trie: LabelTrie, globs: Iterable<string>): Map<number, number> {
  const found = new Map<number, number>()
  for (const glob of globs) {
    const octets = encoder.encode(glob)
    for (const { side, offset, length } of anchorsOf(octets)) {
      const hash = labelHash(octets, offset, length)
      const bucket = trie.find(ROOT, BUCKET + side, hash, octets, offset, length)
      if (bucket !== 0) found.set(bucket, trie.children(bucket))
    }
  }
  return found
}

test('GlobBuckets.hang spreads globs by whichever piece they do not share', () => {
  const digits = Array.from({ length: 1_000 }, (_, i) => String(i).padStart(4, '0'))
  const rows: readonly (readonly [form: (n: string) => string, most: number, why: string])[] = [
    [(n) => `svc${n}-*-eu`, 8, 'ends are shared by all, starts differ'],
    [(n) => `registry-mirror-${n}*`, 8, 'starts differ only behind the longest anchor'],
    [(n) => `*${n}-registry-mirror`, 8, 'ends differ only before the longest anchor'],
    [(n) => `svc-*-${n}`, 4, 'the start is shared by all, ends differ'],
    [(n) => `svc-*${n}*-eu`, 8, 'start and end are shared by all, the inside differs'],
    [(n) => `*${n}*`, 1, 'neither start nor end'],
  ]
  for (const [form, most, why] of rows) {
    const { trie, rows: hung } = mkGlobs(digits.map(form))
    const counts = [...loads(trie, hung.keys()).values()]
    assert.equal(
      counts.reduce((sum, count) => sum + count, 0),
      1_000,
      `all are there: ${why}`,
    )
    assert.ok(Math.max(...counts) <= most, `${Math.max(...counts)} in one bucket: ${why}`)
  }
})

test('GlobBuckets.unhang clears an anchor bit with the last bucket of its kind', () => {
  const { trie, buckets, rows } = mkGlobs(['*ab', '*cd', '*x*'])
  const suffix2 = 1 << (SUFFIX * 8 + 1)
  const inner1 = 1 << (INNER * 8)
  const steps: readonly (readonly [glob: string, bits: number, why: string])[] = [
    ['*ab', suffix2 | inner1, 'another end of two octets is left'],
    ['*x*', suffix2, 'the only inner piece is gone'],
    ['*cd', 0, 'nothing is left'],
  ]
  assert.equal(trie.anchors(ROOT), suffix2 | inner1)
  for (const [glob, bits, why] of steps) {
    const row = rows.get(glob) ?? assert.fail(glob)
    buckets.unhang(ROOT, row)
    trie.drop(row)
    assert.equal(trie.anchors(ROOT), bits, why)
  }
  assert.equal(trie.children(ROOT), 0)
})
