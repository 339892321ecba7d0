import assert from 'node:assert/strict'
import { test } from 'node:test'
import { anchorsOf, INNER, SUFFIX } from '../../../src/policy/match/glob.ts'
import { GlobBuckets } from '../../../src/policy/match/glob-buckets.ts'
import { IdChains } from '../../../src/core/tables/id-chains.ts'
import {
  childHashOf,
  GLOB,
  LabelTrie,
  ROOT,
  ROOT_HASH,
} from '../../../src/policy/match/label-trie.ts'

const encoder = new TextEncoder()

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
    const octets = encoder.encode(glob)
    const hash = childHashOf(ROOT_HASH, GLOB, octets, 0, octets.length)
    const row = trie.make(ROOT, GLOB, hash, octets, 0, octets.length)
    buckets.hang(ROOT, row)
    rows.set(glob, row)
  }
  return { trie, buckets, rows }
}

/** How many globs each bucket holds that one of the globs could be in. */
function loads({ buckets, rows }: Fixture): readonly number[] {
  const found = new Map<string, number>()
  for (const glob of rows.keys()) {
    for (const anchor of anchorsOf(encoder.encode(glob))) {
      found.set(`${anchor.kind} ${anchor.octets}`, buckets.load(ROOT, anchor))
    }
  }
  return [...found.values()]
}

test('GlobBuckets.hang spreads globs by whichever piece they do not share', () => {
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
    assert.equal(
      buckets.globs(ROOT, anchor.kind, anchor.octets),
      0,
      `${glob} is not found any more`,
    )
  }
})

test('GlobBuckets.unhang refuses a glob that is in none of its buckets', () => {
  const { buckets, rows } = mkGlobs(['*ab*'])
  const row = rows.get('*ab*') ?? assert.fail()
  buckets.unhang(ROOT, row)
  assert.throws(() => buckets.unhang(ROOT, row), /Invariant broken/)
})

test('GlobBuckets tells the buckets of one node from those of another', () => {
  const { buckets } = mkGlobs(['ab*'])
  const [anchor] = anchorsOf(encoder.encode('ab*'))
  assert.ok(anchor !== undefined)
  assert.notEqual(buckets.globs(ROOT, anchor.kind, anchor.octets), 0)
  assert.equal(buckets.globs(ROOT + 1, anchor.kind, anchor.octets), 0, 'another node')
  assert.equal(buckets.globs(ROOT, anchor.kind + 1, anchor.octets), 0, 'another kind')
  assert.equal(buckets.globs(ROOT, anchor.kind, anchor.octets + 1), 0, 'other octets')
})
