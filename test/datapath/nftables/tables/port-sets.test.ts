import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ruleId } from '../../../../src/core/ids.ts'
import {
  rangesOf,
  type PortEntry,
  type Range,
} from '../../../../src/datapath/nftables/tables/port-sets.ts'

type Row = readonly [
  protocol: number,
  port: number,
  portBits: number,
  verdict: PortEntry['verdict'],
]

function entriesOf(rows: readonly Row[]): readonly PortEntry[] {
  return rows.map(([protocol, port, portBits, verdict]) => ({
    protocol,
    port,
    portBits,
    verdict,
    rule: ruleId(1),
  }))
}

function textOf({ protocols, ports, verdict }: Range): string {
  return `${protocols.join('-')} ${ports.join('-')} ${verdict}`
}

test('rangesOf cuts nested port prefixes so that the longest counts, and fills in any protocol', () => {
  const rows: readonly (readonly [readonly Row[], readonly string[], string])[] = [
    [[], [], 'nothing'],
    [[[0, 0, 0, 'allow']], ['0-255 0-65535 allow'], 'any protocol'],
    [[[6, 443, 16, 'allow']], ['6-6 443-443 allow'], 'one port'],
    [[[6, 440, 14, 'allow']], ['6-6 440-443 allow'], 'a port prefix'],
    [
      [
        [6, 440, 14, 'allow'],
        [6, 442, 16, 'deny'],
      ],
      ['6-6 440-441 allow', '6-6 442-442 deny', '6-6 443-443 allow'],
      'a narrow deny in an allow',
    ],
    [
      [
        [0, 0, 0, 'deny'],
        [6, 65535, 16, 'allow'],
      ],
      ['6-6 0-65534 deny', '6-6 65535-65535 allow', '0-5 0-65535 deny', '7-255 0-65535 deny'],
      'a port in any protocol',
    ],
  ]
  for (const [entries, ranges, reason] of rows) {
    assert.deepEqual(rangesOf(entriesOf(entries)).map(textOf), ranges, reason)
  }
})

const entry = fc
  .record({
    protocol: fc.constantFrom(0, 6, 17, 255),
    bits: fc.integer({ min: 0, max: 16 }),
    port: fc.oneof(fc.integer({ min: 0, max: 65_535 }), fc.constantFrom(0, 1, 440, 65_535)),
    verdict: fc.constantFrom('allow' as const, 'deny' as const, 'audit' as const),
  })
  .map(({ protocol, bits, port, verdict }): PortEntry => {
    const portBits = protocol === 0 ? 0 : bits
    const first = protocol === 0 ? 0 : port & ((0xffff << (16 - portBits)) & 0xffff)
    return { protocol, port: first, portBits, verdict, rule: ruleId(1) }
  })

const entries = fc.uniqueArray(entry, {
  selector: ({ protocol, port, portBits }) => `${protocol} ${port} ${portBits}`,
  maxLength: 20,
})

function naive(all: readonly PortEntry[], protocol: number, port: number): string | undefined {
  const around = all.filter((each) => {
    if (each.protocol === 0) return true
    return each.protocol === protocol && (each.port ^ port) >> (16 - each.portBits) === 0
  })
  const width = (each: PortEntry): number => (each.protocol === 0 ? -1 : each.portBits)
  return around.toSorted((a, b) => width(b) - width(a))[0]?.verdict
}

test('rangesOf never overlaps, and gives each packet the verdict of the longest match', () => {
  fc.assert(
    fc.property(entries, (all) => {
      const ranges = rangesOf(all)
      const ports = [0, 65_535, ...all.flatMap(({ port }) => [port, port + 1, port - 1])]
      for (const protocol of [0, 5, 6, 7, 17, 254, 255]) {
        for (const port of ports.filter((each) => each >= 0 && each <= 65_535)) {
          const found = ranges.filter(
            (range) =>
              protocol >= range.protocols[0] &&
              protocol <= range.protocols[1] &&
              port >= range.ports[0] &&
              port <= range.ports[1],
          )
          assert.ok(found.length <= 1, `${protocol} ${port} is in ${found.length} ranges`)
          assert.equal(found[0]?.verdict, naive(all, protocol, port), `${protocol} ${port}`)
        }
      }
    }),
  )
})
