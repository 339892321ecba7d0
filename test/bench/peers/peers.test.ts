// Tests the pure parts of the peer benchmark: percentiles, medians, criteria, the tables, options. The measurements themselves are not tests
// and never run here.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { criteriaOf, isOver, soakCriterion, verdictOf, type Criterion } from './criteria.ts'
import { percentileUs, type Buckets } from './histogram.ts'
import { figuresOf, medianFigures, type Figures, type LoadResult } from './load-result.ts'
import { parseOptions } from './options.ts'
import { formatCriteria, formatReport, formatRows, type Row } from './report.ts'
import type { LoadName, SubjectName } from './subjects.ts'
import type { Pace } from './turn.ts'

function mkFigures(given: Partial<Figures> = {}): Figures {
  return {
    qps: 80_000,
    cpu: 10,
    p50: 40,
    p99: 100,
    p999: 200,
    lost: 0,
    noerror: 1,
    rssMb: 90,
    generator: 4,
    upstream: 3,
    wrong: 0,
    late: 0,
    others: 0,
    ...given,
  }
}

test('percentileUs returns the bucket with the share', () => {
  const hundred: Buckets = Array.from({ length: 100 }, (_, i) => [(i + 1) * 1000, 1])
  const rows: readonly (readonly [Buckets, number, number, string])[] = [
    [hundred, 0.5, 50, 'the fiftieth of a hundred'],
    [hundred, 0.99, 99, 'one is beyond'],
    [hundred, 0.999, 100, 'less than one is beyond: the last'],
    [hundred, 0, 1, 'share 0 is the lowest value'],
    [[[2500, 7]], 0.5, 2.5, 'one bucket is everything'],
    [
      [
        [1000, 989],
        [9000, 11],
      ],
      0.99,
      9,
      'counts weigh',
    ],
    [[], 0.5, NaN, 'no query was answered'],
  ]
  for (const [buckets, share, expected, reason] of rows) {
    assert.equal(percentileUs(buckets, share), expected, reason)
  }
})

const LOAD: LoadResult = {
  sent: 1000,
  answered: 990,
  inTime: 980,
  lost: 10,
  wrong: 1,
  late: 5,
  refusedSend: 0,
  reconnects: 0,
  noerror: 891,
  servfail: 99,
  refused: 0,
  other: 0,
  elapsedNs: 2e9,
  cpuNs: 990_000,
  next: 1000,
  latency: [[30_000, 990]],
}

test('figuresOf counts answers in time for q/s, and CPU over all answers', () => {
  const rest = { upstreamCpuUs: 1980, others: 0.25 }
  const figures = figuresOf(LOAD, { cpuUs: 9900, residentBytes: 50e6 }, rest)
  assert.deepEqual(figures, {
    qps: 490,
    cpu: 10,
    p50: 30,
    p99: 30,
    p999: 30,
    lost: 0.01,
    noerror: 0.9,
    rssMb: 50,
    generator: 1,
    upstream: 2,
    wrong: 1,
    late: 0.005,
    others: 0.25,
  })
  const direct = figuresOf(LOAD, undefined, rest)
  assert.ok(
    Number.isNaN(direct.cpu) && Number.isNaN(direct.rssMb),
    'without a proxy there is neither',
  )
})

test('medianFigures computes the median of each figure on its own', () => {
  const rounds = [
    { qps: 1, p99: 30 },
    { qps: 3, p99: 10 },
    { qps: 2, p99: 20 },
  ].map(mkFigures)
  const { qps, p99 } = medianFigures(rounds)
  assert.deepEqual({ qps, p99 }, { qps: 2, p99: 20 })
})

/** Figures of namegate exactly at every limit, without the goals. */
function atLimits(subject: SubjectName, load: LoadName, pace: Pace): Figures | undefined {
  if (subject === 'direct') return mkFigures({ p50: 20, p99: 50 })
  if (pace !== 'peak') {
    const times = load === 'new' ? 1.3 : 1
    return mkFigures({ p50: 20 + 60 * times, p99: 50 + 500 * times })
  }
  const qps: Partial<Record<SubjectName, number>> = {
    dnsdist: 70_000,
    'dnsmasq-nftset': load === 'new' ? 7500 : 11_500,
    unbound: load === 'tcp' ? 40_000 : 10_000,
    'namegate-nftables': 30_000,
    namegate: { steady: 80_500, new: 52_500, tcp: 80_000, 'tcp-single': 10_000 }[load],
  }
  const cpu: Partial<Record<SubjectName, number>> = {
    namegate: 9,
    'namegate-tproxy': 10.35,
    'namegate-nftables': load === 'new' ? 3 : 10.35,
  }
  return mkFigures({ qps: qps[subject] ?? 1, cpu: cpu[subject] ?? 10 })
}

test('criteriaOf accepts figures at every limit, and reports figures just beyond it', () => {
  const met = criteriaOf(atLimits)
  assert.equal(met.length, 19)
  for (const criterion of met) {
    const { name, value, limit, atLeast } = criterion
    assert.ok(Math.abs(value - limit) < limit * 1e-9, `${name}: ${value} of ${limit}`)
    const beyond: Criterion = { ...criterion, value: limit * (atLeast ? 0.99 : 1.01) }
    assert.ok(isOver(beyond), `${name} is over at ${beyond.value}`)
    const within: Criterion = { ...criterion, value: limit * (atLeast ? 1.01 : 0.99) }
    assert.ok(!isOver(within), `${name} is within its limit at ${within.value}`)
  }
})

test('criteriaOf returns NaN, and no verdict, for missing figures', () => {
  const criteria = criteriaOf((subject, load, pace) =>
    subject === 'dnsdist' ? undefined : atLimits(subject, load, pace),
  )
  const missing = criteria.filter((each) => verdictOf(each) === 'not measured')
  assert.deepEqual(
    missing.map(({ name }) => name),
    ['steady: q/s, of dnsdist', 'steady: CPU/query, of dnsdist', 'new: q/s, of dnsdist'],
  )
  assert.ok(missing.every(isOver), 'a missing figure misses its limit')
})

test('verdictOf distinguishes the limit and the goal', () => {
  const base = { name: '', unit: 'x', limit: 0.75, goal: 1, atLeast: true } as const
  const rows = [
    [0.7, 'over'],
    [0.8, 'ok, goal missed'],
    [1.1, 'ok, goal met'],
  ] as const
  for (const [value, verdict] of rows) assert.equal(verdictOf({ ...base, value }), verdict)
})

test('soakCriterion accepts stable memory and reports growing memory', () => {
  const rows: readonly (readonly [(second: number) => number, boolean, string])[] = [
    [() => 100e6, false, 'it stays'],
    [(second) => (second < 20 ? 100e6 + second * 4e6 : 180e6), false, 'it grows only at first'],
    [(second) => 100e6 + second * 1e6, true, 'it grows all the time'],
    [(second) => 100e6 + (second % 2) * 20e6, false, 'it swings'],
  ]
  for (const [at, over, reason] of rows) {
    const resident = Array.from({ length: 60 }, (_, second) => at(second))
    assert.equal(isOver(soakCriterion('steady', resident)), over, reason)
  }
  assert.ok(isOver(soakCriterion('steady', [])), 'there are no samples')
})

function mkRow(given: Partial<Row> = {}): Row {
  const figures = mkFigures()
  const base = { load: 'steady', pace: 'peak', subject: 'namegate', rounds: 3, note: '' } as const
  return { ...base, figures, qpsSpread: [79_000, 81_000], ...given }
}

test('formatRows aligns columns, and never rounds a loss away', () => {
  const lossy = mkFigures({ qps: 5000, lost: 0.00004, noerror: 0.99999, cpu: NaN })
  const [head, first, second] = formatRows([
    mkRow(),
    mkRow({ subject: 'direct', figures: lossy }),
  ]).split('\n')
  assert.match(head ?? '', /^ {2}load +pace +proxy +q\/s +least +most +CPU us\/q /)
  assert.match(first ?? '', /steady {2}peak {2}namegate +80000 +79000 +81000 +10\.0 .* 0% +100% /)
  assert.match(second ?? '', /direct +5000 .* - .* <0\.01% +99\.99% /)
  assert.equal(first?.indexOf('80000'), (second?.indexOf('5000') ?? 0) - 1)
})

test('formatReport lists the doubts about a row', () => {
  const slow = mkFigures({ qps: 30_000, cpu: 10, generator: 20, upstream: 13, wrong: 2, others: 1 })
  const text = formatReport({
    head: ['head'],
    settings: [['direct', 'no proxy']],
    leftOut: [['namegate-tproxy', 'not built']],
    rows: [mkRow({ figures: slow }), mkRow({ pace: '1k', figures: mkFigures({ late: 0.5 }) })],
    criteria: [],
  })
  assert.match(text, /namegate-tproxy: left out: not built/)
  assert.match(text, /peak: doubtful: 2 answers to nothing asked, others kept 1\.0 CPUs busy, load/)
  assert.match(text, /1k: doubtful: 50\.00% sent late\n/)
})

test('formatCriteria shows value, limit, goal and verdict', () => {
  const text = formatCriteria([
    { name: 'a', value: 0.8, unit: 'x', limit: 0.75, atLeast: true, goal: 1 },
    { name: 'b', value: 61, unit: 'us', limit: 60, atLeast: false },
  ])
  assert.match(text, /a +0\.80 x +>= 0\.75 x +1 x +ok, goal missed\n/)
  assert.match(text, /b +61 us +<= 60 us +over\n/)
})

test('parseOptions accepts the options of the usage, and reports faults', () => {
  const defaults = {
    quick: false,
    only: [],
    json: false,
    profile: false,
    soak: false,
    strict: false,
    priority: false,
    rounds: 3,
  }
  assert.deepEqual(parseOptions([]), defaults)
  const given = parseOptions(['--quick', '--only', 'dnsdist', '--only', 'direct', '-o', 'json'])
  const only = ['dnsdist', 'direct']
  assert.deepEqual(given, { ...defaults, quick: true, rounds: 1, json: true, only })
  const wrong = [['--only', 'bind'], ['--rounds', '0'], ['--rounds', 'x'], ['-o', 'yaml'], ['--no']]
  for (const args of wrong)
    assert.match(JSON.stringify(parseOptions(args)), /names: direct, namegate/)
})
