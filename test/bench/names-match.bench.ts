// Names of received queries against 10, 1,000 and 100,000 selectors: microseconds a name, and the ratio of the costs of many and of few. Each
// size has 20,000 names of its own, and half of them match, so that the few selectors have as much to find. `same names` are those of
// 100,000, of which the few match almost none.

import { QueryView } from '../../src/dns/query.ts'
import { IdList } from '../../src/core/tables/id-list.ts'
import { PatternIndex } from '../../src/policy/match/pattern-index.ts'
import type { Pattern } from '../../src/policy/match/pattern.ts'
import { Random } from '../support/models/random.ts'
import { runBench, type Figure } from './support/bench.ts'
import { measure, type Case, type Timing } from './support/measure.ts'
import { mkQuery, PacketSlab } from './support/packets.ts'
import { mkNames, mkSelectors } from './support/selectors.ts'

const SIZES = [10, 1_000, 100_000]
const NAMES = 20_000
const MATCHING_PERCENT = 50
const LIMIT_MICROS = 2
const LIMIT_RATIO = 4

const random = new Random(20)
const selectors = mkSelectors(random, 100_000)
const view = new QueryView()
const out = new IdList()

function mkIndex(patterns: readonly Pattern[]): PatternIndex {
  const index = new PatternIndex()
  patterns.forEach((pattern, id) => index.add(pattern, id))
  return index
}

function mkPackets(patterns: readonly Pattern[]): PacketSlab {
  const names = mkNames(random, { selectors: patterns, count: NAMES, matching: MATCHING_PERCENT })
  return new PacketSlab(names.map((name, i) => mkQuery(i, name)))
}

/** Reads every packet and matches its name; returns the matches. */
function readAndMatch(
  { octets, offsets, lengths, count }: PacketSlab,
  index: PatternIndex,
): number {
  let found = 0
  for (let i = 0; i < count; i++) {
    if (view.read(octets, offsets[i]!, lengths[i]!) !== 'ok') throw new Error('Cannot read a query')
    out.clear()
    found += index.match(view.name, 0, out)
  }
  return found
}

/** Matches the names in their packets, after 12 octets of header. They are already in lower case. */
function matchInPlace({ octets, offsets, count }: PacketSlab, index: PatternIndex): number {
  let found = 0
  for (let i = 0; i < count; i++) {
    out.clear()
    found += index.match(octets, offsets[i]! + 12, out)
  }
  return found
}

function micros(name: string, timing: Timing, limit?: number): Figure {
  const { median, least, most } = timing
  const figure: Figure = { name, value: median, unit: 'us', spread: [least, most] }
  return limit === undefined ? figure : { ...figure, limit }
}

function run(): readonly Figure[] {
  const sets = SIZES.map((size) => {
    const own = selectors.slice(0, size)
    return { size, index: mkIndex(own), packets: mkPackets(own) }
  })
  const most = sets.at(-1)
  if (most === undefined) throw new Error('Cannot run: no sizes')
  const empty = new PatternIndex()
  const cases: Case[] = sets.flatMap(({ size, index, packets }) => [
    { name: `${size} read`, operations: NAMES, run: () => readAndMatch(packets, index) },
    { name: `${size} match`, operations: NAMES, run: () => matchInPlace(packets, index) },
    { name: `${size} same`, operations: NAMES, run: () => matchInPlace(most.packets, index) },
  ])
  cases.push({ name: 'read', operations: NAMES, run: () => readAndMatch(most.packets, empty) })
  const timings = measure(cases, { warmUp: 10, counted: 21 })
  const label = (size: number) => size.toLocaleString('en-US')
  return [
    micros('read a packet, no selectors', timings.of('read')),
    ...SIZES.map((size) =>
      micros(`read and match, ${label(size)} selectors`, timings.of(`${size} read`), LIMIT_MICROS),
    ),
    ...SIZES.map((size) =>
      micros(`match, ${label(size)} selectors`, timings.of(`${size} match`), LIMIT_MICROS),
    ),
    ...SIZES.map((size) =>
      micros(
        `match the same names, ${label(size)} selectors`,
        timings.of(`${size} same`),
        LIMIT_MICROS,
      ),
    ),
    ratio('read and match, 100,000 : 10', timings.ratio('100000 read', '10 read')),
    ratio('match, 100,000 : 10', timings.ratio('100000 match', '10 match')),
    ratio('match the same names, 100,000 : 10', timings.ratio('100000 same', '10 same')),
    ...sets.map(({ size, index, packets }): Figure => ({
      name: `matches a name, ${label(size)} selectors`,
      value: matchInPlace(packets, index) / NAMES,
      unit: '',
    })),
    {
      name: 'memory a selector, 100,000 selectors',
      value: most.index.octets / most.size,
      unit: 'B',
    },
    ...changes(most.index),
  ]
}

function ratio(name: string, value: number): Figure {
  return { name, value, unit: 'x', limit: LIMIT_RATIO }
}

/** Adds one selector to 100,000, and removes one. */
function changes(index: PatternIndex): readonly Figure[] {
  const more = mkSelectors(new Random(21), 1_000)
  const timings = measure(
    [
      {
        name: 'add',
        operations: more.length,
        run: () => (more.forEach((each, i) => index.add(each, 1_000_000 + i)), 0),
      },
      {
        name: 'remove',
        operations: more.length,
        run: () => (more.forEach((each, i) => index.remove(each, 1_000_000 + i)), 0),
      },
    ],
    { warmUp: 5, counted: 11 },
  )
  return [
    micros('add one selector to 100,000', timings.of('add')),
    micros('remove one selector of 100,000', timings.of('remove')),
  ]
}

await runBench({
  name: 'names/match',
  about: `${NAMES.toLocaleString('en-US')} names, ${MATCHING_PERCENT}% made to match; 40% exact, 30% *.x, 20% **.x, 10% globs`,
  run,
})
