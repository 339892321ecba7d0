import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ANY_PROTOCOL, EVERYTHING, SCTP, TCP, UDP } from '../../../src/core/protocol.ts'
import {
  flatten,
  portPrefixes,
  type Action,
  type Coverage,
  type FlatAction,
  type FlatEntry,
} from '../../../src/policy/compile/flatten.ts'

function cover(action: Action, protocol: number, low: number, high: number, origin = 1): Coverage {
  return { action, range: { protocol, low, high }, origin }
}

/** `6 443/16 allow` and the like, as in a longest-match table. */
function textOf({ protocol, port, portBits, action, origins }: FlatEntry): string {
  return `${protocol} ${port}/${portBits} ${action} by ${origins.join('+')}`
}

/** The result of a longest-match table. */
function lookup(
  entries: readonly FlatEntry[],
  protocol: number,
  port: number,
): FlatEntry | undefined {
  const own = entries
    .filter(
      (entry) =>
        entry.protocol === protocol &&
        port >> (16 - entry.portBits) === entry.port >> (16 - entry.portBits),
    )
    .sort((a, b) => b.portBits - a.portBits)
  return own[0] ?? entries.find((entry) => entry.protocol === ANY_PROTOCOL)
}

/** The naive rule: deny, else allow, else audit, of all entries that cover the port; and if audited rules deny it, too. */
function naive(
  coverages: readonly Coverage[],
  protocol: number,
  port: number,
): FlatAction | undefined {
  const covering = coverages.filter(({ range }) => {
    if (range.protocol === ANY_PROTOCOL) return true
    return range.protocol === protocol && range.low <= port && port <= range.high
  })
  const found = (['deny', 'allow', 'audit'] as const).find((action) =>
    covering.some((c) => c.action === action),
  )
  if (found === 'deny' || !covering.some(({ action }) => action === 'audit-deny')) return found
  return found === undefined ? 'audit-deny' : 'audit-pass'
}

const ROWS: readonly (readonly [
  coverages: readonly Coverage[],
  entries: readonly string[],
  reason: string,
])[] = [
  [[], [], 'no entry'],
  [[{ action: 'allow', range: EVERYTHING, origin: 3 }], ['0 0/0 allow by 3'], 'everything'],
  [[cover('allow', TCP, 443, 443)], ['6 443/16 allow by 1'], 'one port'],
  [[cover('allow', TCP, 0, 65_535)], ['6 0/0 allow by 1'], 'every port of a protocol'],
  [[cover('allow', TCP, 65_534, 65_534)], ['6 65534/16 allow by 1'], 'the last port but one'],
  [
    [cover('allow', TCP, 80, 90)],
    ['6 80/13 allow by 1', '6 88/15 allow by 1', '6 90/16 allow by 1'],
    'a range',
  ],
  [
    [cover('deny', TCP, 0, 65_535), cover('allow', TCP, 443, 443, 2)],
    ['6 0/0 deny by 1'],
    'an allow inside a deny is left out',
  ],
  [
    [cover('allow', TCP, 8, 15), cover('deny', TCP, 12, 31, 2)],
    ['6 8/14 allow by 1', '6 12/14 deny by 2', '6 16/12 deny by 2'],
    'an allow that overlaps a deny is split',
  ],
  [
    [cover('allow', TCP, 443, 443, 2), cover('allow', TCP, 443, 443, 1)],
    ['6 443/16 allow by 1+2'],
    'equal entries keep every rule',
  ],
  [
    [cover('audit', ANY_PROTOCOL, 0, 65_535, 0), cover('allow', UDP, 53, 53)],
    ['0 0/0 audit by 0', '17 53/16 allow by 1'],
    'an allow within an audit default',
  ],
  [
    [cover('allow', ANY_PROTOCOL, 0, 65_535), cover('deny', TCP, 25, 25, 2)],
    ['0 0/0 allow by 1', '6 25/16 deny by 2'],
    'a deny inside an allow',
  ],
  [
    [cover('allow', TCP, 8, 15), cover('audit-deny', TCP, 12, 31, 2)],
    ['6 8/14 allow by 1', '6 12/14 audit-pass by 2', '6 16/12 audit-deny by 2'],
    'what an audited rule denies of an allow passes and is reported; beyond the allow nothing passes',
  ],
  [
    [cover('audit-deny', ANY_PROTOCOL, 0, 65_535), cover('deny', TCP, 25, 25, 2)],
    ['0 0/0 audit-deny by 1', '6 25/16 deny by 2'],
    'a deny inside what an audited rule denies',
  ],
  [
    [cover('deny', ANY_PROTOCOL, 0, 65_535), cover('allow', SCTP, 1, 9, 2)],
    ['0 0/0 deny by 1'],
    'deny of everything',
  ],
]

for (const [coverages, entries, reason] of ROWS) {
  test(`flatten: ${reason}`, () => assert.deepEqual(flatten(coverages).map(textOf), entries))
}

const range = fc.oneof(
  fc.record({
    protocol: fc.constantFrom(TCP, UDP, SCTP),
    ports: fc.tuple(fc.nat(65_535), fc.nat(65_535)),
  }),
  fc.record({ protocol: fc.constantFrom(TCP, UDP), ports: fc.tuple(fc.nat(40), fc.nat(40)) }),
  fc.record({ protocol: fc.constant(ANY_PROTOCOL), ports: fc.constant([0, 65_535] as const) }),
)
const coverage = fc
  .record({
    action: fc.constantFrom<Action>('deny', 'allow', 'audit', 'audit-deny'),
    range,
    origin: fc.nat(5),
  })
  .map(({ action, range: { protocol, ports }, origin }) =>
    cover(action, protocol, Math.min(...ports), Math.max(...ports), origin),
  )

test('flatten: the longest match is what the rules say, for every port at which anything changes', () => {
  fc.assert(
    fc.property(fc.array(coverage, { maxLength: 7 }), (coverages) => {
      const entries = flatten(coverages)
      const ports = new Set([
        0,
        65_535,
        ...coverages.flatMap(({ range: { low, high } }) => [low - 1, low, high, high + 1]),
      ])
      for (const protocol of [TCP, UDP, SCTP, 1]) {
        for (const port of ports) {
          if (port < 0 || port > 65_535) continue
          assert.equal(
            lookup(entries, protocol, port)?.action,
            naive(coverages, protocol, port),
            `${port}/${protocol}`,
          )
        }
      }
      const keys = entries.map(({ protocol, port, portBits }) => `${protocol} ${port}/${portBits}`)
      assert.equal(new Set(keys).size, keys.length, 'no key twice')
    }),
    { numRuns: 400 },
  )
})

test('flatten: order of the rules changes nothing', () => {
  fc.assert(
    fc.property(fc.array(coverage, { maxLength: 6 }), (coverages) => {
      const forward = flatten(coverages).map(textOf).sort()
      assert.deepEqual(
        flatten([...coverages].reverse())
          .map(textOf)
          .sort(),
        forward,
      )
    }),
  )
})

test('portPrefixes covers a range exactly, with at most 30 prefixes', () => {
  fc.assert(
    fc.property(fc.nat(65_535), fc.nat(65_535), (a, b) => {
      const [low, high] = [Math.min(a, b), Math.max(a, b)]
      const prefixes = portPrefixes(low, high)
      let next = low
      for (const { port, portBits } of prefixes) {
        assert.equal(port, next)
        assert.equal(port % 2 ** (16 - portBits), 0)
        next = port + 2 ** (16 - portBits)
      }
      assert.equal(next, high + 1)
      assert.ok(prefixes.length <= 30)
    }),
  )
  assert.equal(portPrefixes(1, 65_534).length, 30)
})
