import assert from 'node:assert/strict'
import { test } from 'node:test'
import { IdList } from '../../../src/core/tables/id-list.ts'
import { labelHash } from '../../../src/policy/match/name-labels.ts'
import { PatternIndex } from '../../../src/policy/match/pattern-index.ts'
import type { Pattern } from '../../../src/policy/match/pattern.ts'
import { mkWord } from '../../bench/support/selectors.ts'
import { idsOf, mkIndex, mkName, mkPattern, naiveIds } from '../../support/models/pattern-index.ts'
import { Random } from '../../support/models/random.ts'

// The table of docs/spec/semantics 1, and the sentences of the grammar above it.
const rows: readonly (readonly [pattern: string, name: string, expected: boolean, why: string])[] =
  [
    ['cilium.io', 'cilium.io', true, 'exact'],
    ['CILIUM.io.', 'cilium.io', true, 'case and final dot of a pattern do not count'],
    ['cilium.io', 'a.cilium.io', false, 'exact is not a suffix'],
    ['*.cilium.io', 'www.cilium.io', true, 'one label'],
    ['*.cilium.io', 'cilium.io', false, 'a label is needed'],
    ['*.cilium.io', 'a.b.cilium.io', false, 'a star matches no dot'],
    ['*cilium.io', 'cilium.io', true, 'a star can be empty'],
    ['*cilium.io', 'xcilium.io', true, 'a star inside a label'],
    ['*cilium.io', 'a.cilium.io', false, 'a star inside a label matches no dot'],
    ['*.ci*.io', 'x.cilium.io', true, 'stars in two labels'],
    ['*.ci*.io', 'x.ci.io', true, 'the second one empty'],
    ['*.ci*.io', 'cilium.io', false, 'the first label is needed'],
    ['*.ci*.io', 'a.b.ci.io', false, 'one label, not two'],
    ['**.cilium.io', 'a.cilium.io', true, 'one label below'],
    ['**.cilium.io', 'a.b.c.cilium.io', true, 'three labels below'],
    ['**.cilium.io', 'cilium.io', false, 'not itself'],
    ['**.cilium.io', 'evilcilium.io', false, 'whole labels only'],
    ['*.*.cilium.io', '_sip._tcp.cilium.io', true, 'two labels'],
    ['*.*.cilium.io', 'a.cilium.io', false, 'one is too few'],
    ['*', 'a.b', true, 'everything'],
    ['*', '.', true, 'the root too'],
    ['*', 'a\\046b.c', true, 'odd octets too'],
    ['**', 'a.b', true, 'only stars'],
    ['**.ci*.io', 'a.b.ci.io', true, 'below, with a star behind it'],
    ['**.ci*.io', 'ci.io', false, 'below needs a label'],
    ['a.**.io', 'a.b.io', true, '** elsewhere equals *'],
    ['a.**.io', 'a.b.c.io', false, '** elsewhere is one label'],
    ['*.io', 'a\\046b.io', false, 'a dot inside a label is no octet of the class'],
    ['**.io', 'a.b\\000.io', false, 'an odd octet in a label that no literal compares'],
    ['**.io', 'a\\255.b.io', false, 'octet above ASCII'],
    ['a.io', 'a.io', true, 'control of the two rows below'],
    ['a.*', 'a.io', true, 'a star as the last label'],
    ['*.*', 'io', false, 'two labels needed, found one'],
    ['*a*.io', 'bab.io', true, 'a piece inside'],
    ['*aa*.io', 'aaaa.io', true, 'the piece occurs three times and counts once'],
  ]

test('PatternIndex.match decides each row of docs/spec/semantics 1 alone', () => {
  for (const [pattern, name, expected, why] of rows) {
    const index = mkIndex([mkPattern(pattern)])
    assert.deepEqual(idsOf(index, mkName(name)), expected ? [0] : [], `${pattern} ${name}: ${why}`)
  }
})

test('PatternIndex.match decides all rows of docs/spec/semantics 1 with every pattern in one index', () => {
  const patterns = new Map(rows.map(([pattern], id) => [id, mkPattern(pattern)]))
  const index = mkIndex([...patterns.values()])
  assert.equal(index.size, rows.length)
  for (const [i, [pattern, name, expected, why]] of rows.entries()) {
    const ids = idsOf(index, mkName(name))
    assert.deepEqual(ids, naiveIds(patterns, mkName(name)), name)
    assert.equal(ids.includes(i), expected, `${pattern} ${name}: ${why}`)
  }
})

test('PatternIndex.match accepts names of the greatest size', () => {
  const long = mkName(`${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(61)}`)
  assert.equal(long.length, 255)
  const many = mkName(Array.from({ length: 127 }, () => 'a').join('.'))
  assert.equal(many.length, 255)
  const labels = (count: number, last: string) =>
    [...Array.from({ length: count }, () => '*'), last].join('.')
  const texts = [
    `*.${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(61)}`,
    `**.${'d'.repeat(61)}`,
    `**.*${'d'.repeat(60)}`,
    `**.*${'d'.repeat(62)}`,
    labels(126, 'a'),
    labels(125, 'a'),
    `**.${labels(124, 'a')}`,
    '*'.repeat(255),
    `${'a'.repeat(64)}.io`,
    `${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(61)}`,
  ]
  const index = mkIndex(texts.map(mkPattern))
  assert.deepEqual(idsOf(index, long), [0, 1, 2, 7, 9])
  assert.deepEqual(idsOf(index, many), [4, 6, 7])
})

test('PatternIndex.match stops at octets that are not a name', () => {
  const index = mkIndex(['**.a', '*.a', 'a'].map(mkPattern))
  const out = new IdList()
  const rows: readonly (readonly [wire: Uint8Array, why: string])[] = [
    [Uint8Array.of(1, 0x61, 0xc0, 0x0c), 'a compression pointer'],
    [Uint8Array.of(1, 0x61), 'the array ends before the name'],
    [Uint8Array.of(), 'nothing at all'],
    [new Uint8Array(600).map((_, i) => (i % 2 === 0 ? 1 : 0x61)), 'more than 127 labels'],
  ]
  for (const [wire, why] of rows) assert.equal(index.match(wire, 0, out), 0, why)
})

test('PatternIndex.add keeps several ids of one pattern and several patterns of one id', () => {
  const index = new PatternIndex()
  for (const id of [1, 2, 3]) index.add(mkPattern('*.a'), id)
  index.add(mkPattern('b.a'), 2)
  index.add(mkPattern('*'), 2)
  assert.deepEqual(idsOf(index, mkName('b.a')), [1, 2, 2, 2, 3])
  index.remove(mkPattern('*.a'), 2)
  index.remove(mkPattern('*'), 2)
  assert.deepEqual(idsOf(index, mkName('b.a')), [1, 2, 3])
  assert.deepEqual(idsOf(index, mkName('c.a')), [1, 3])
})

test('PatternIndex.remove refuses what was not added', () => {
  const index = mkIndex(['a.b', '*x*.b', '**.b', '*'].map(mkPattern))
  for (const [text, id] of [
    ['a.b', 1],
    ['*', 0],
    ['b', 0],
    ['c.b', 0],
    ['x*.b', 1],
    ['**.a.b', 2],
  ] as const) {
    assert.throws(() => index.remove(mkPattern(text), id), /Invariant broken/, text)
  }
  assert.equal(index.size, 4)
  assert.deepEqual(idsOf(index, mkName('a.b')), [0, 2, 3])
})

/** Two different labels with equal hashes. Among 500,000 labels there are some thirty such pairs. */
function mkColliding(): readonly [string, string] {
  const seen = new Map<number, string>()
  const random = new Random(1)
  for (let i = 0; i < 500_000; i++) {
    const label = mkWord(random, 4)
    const hash = labelHash(Buffer.from(label), 0, label.length)
    const other = seen.get(hash)
    if (other !== undefined && other !== label) return [other, label]
    seen.set(hash, label)
  }
  return assert.fail('no two labels of equal hash')
}

test('PatternIndex.match keeps labels of equal hash apart', () => {
  const [one, other] = mkColliding()
  const index = mkIndex([`${one}.x`, `a.${one}`, `b.${other}`].map(mkPattern))
  const rows: readonly (readonly [name: string, expected: readonly number[], why: string])[] = [
    [`${one}.x`, [0], 'the label itself'],
    [`${other}.x`, [], 'another label of equal hash'],
    [`a.${one}`, [1], 'the label below its own parent'],
    [`a.${other}`, [], 'the same label below a parent of equal hash'],
    [`b.${other}`, [2], 'the label below its own parent'],
  ]
  for (const [name, expected, why] of rows) {
    assert.deepEqual(idsOf(index, mkName(name)), expected, `${name}: ${why}`)
  }
  index.remove(mkPattern(`${one}.x`), 0)
  index.remove(mkPattern(`a.${one}`), 1)
  assert.deepEqual(idsOf(index, mkName(`b.${other}`)), [2], 'removing one leaves the other')
})

test('PatternIndex.remove frees all room for later adds', () => {
  const index = new PatternIndex()
  const round = (salt: number) =>
    Array.from({ length: 2_000 }, (_, i) =>
      mkPattern(
        [`a${i}s${salt}.x`, `*.b${i}s${salt}.x`, `c${i}*s${salt}.x`, `**.d${i}.s${salt}.x`][
          i % 4
        ] ?? '',
      ),
    )
  const fill = (patterns: readonly Pattern[]) =>
    patterns.forEach((pattern, id) => index.add(pattern, id))
  const empty = (patterns: readonly Pattern[]) =>
    patterns.forEach((pattern, id) => index.remove(pattern, id))
  fill(round(1_000))
  const { octets } = index
  empty(round(1_000))
  for (let salt = 1_001; salt < 1_011; salt++) {
    fill(round(salt))
    empty(round(salt))
  }
  // Parts of the table grow by chance of the hash, so a little more octets are right and ten times as many are not.
  assert.ok(
    index.octets <= octets * 1.25,
    `${index.octets} octets after ten rounds, ${octets} after one`,
  )
  assert.equal(index.size, 0)
})
