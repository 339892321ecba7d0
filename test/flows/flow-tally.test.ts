import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { FlowKind } from '../../src/flows/record/flow-kinds.ts'
import { FlowRing } from '../../src/flows/record/flow-ring.ts'
import { FlowTally, type Counted } from '../../src/flows/flow-tally.ts'
import { prefixOf } from '../support/nodes/node.ts'
import { mkDnsFlow } from '../support/nodes/dns-flow.ts'

const MINUTE = 60_000

class Lab {
  readonly ring = new FlowRing()
  readonly tally: FlowTally
  #made = 0

  constructor(rows?: number) {
    const describe = (): string => `${this.#made++}`
    this.tally = new FlowTally(this.ring, describe, rows)
  }

  dns(
    time: number,
    name: string,
    {
      kind = 'answered',
      endpoint = 1,
      qtype = 1,
      from = '10.0.0.1',
      reason = '',
    }: {
      readonly kind?: FlowKind
      readonly endpoint?: number
      readonly qtype?: number
      readonly from?: string
      readonly reason?: string
    } = {},
  ): void {
    const given = { kind, endpoint, qtype, from, reason, outcome: 1, addresses: 1 }
    this.ring.addDns(time, mkDnsFlow(name, given))
    this.tally.add(this.ring.count - 1, time)
  }

  packet(time: number, peer: string, port: number, names: readonly string[] = []): void {
    const { octets } = prefixOf(peer)
    const base = { kind: 'audit', endpoint: 1, family: 4, peer: octets, protocol: 6 } as const
    this.ring.addPacket(time, { ...base, port, identity: 9, rule: 0, names, reason: 'policy' })
    this.tally.add(this.ring.count - 1, time)
  }

  drain(now: number, all = false): readonly Counted[] {
    const taken: Counted[] = []
    this.tally.drain(now, (counted) => taken.push(counted) > 0, all)
    return taken
  }
}

test('FlowTally reports new flows at once, and repetitions after one minute, two, four, and at most an hour', () => {
  const lab = new Lab()
  const told: number[] = []
  for (let second = 0; second <= 4 * 3600; second++) {
    lab.dns(second * 1000, 'a.example')
    for (const { count } of lab.drain(second * 1000)) told.push(second, count)
  }
  const hour = 3600
  assert.deepEqual(told.slice(0, 8), [0, 1, 60, 60, 180, 120, 420, 240])
  const times = told.filter((_, i) => i % 2 === 0)
  assert.deepEqual(
    times.slice(-2).map((time, i) => (times.slice(-3)[i] ?? 0) + hour - time),
    [0, 0],
    'then once an hour',
  )
  assert.equal(lab.drain(4 * hour * 1000, true).length, 1)
})

test('FlowTally keeps count, first and last of unreported flows', () => {
  const lab = new Lab()
  lab.dns(1000, 'a.example')
  lab.dns(1500, 'A.Example')
  lab.dns(2000, 'b.example')
  assert.deepEqual(lab.drain(2000), [
    { text: '0', count: 2, first: 1000, last: 1500 },
    { text: '1', count: 1, first: 2000, last: 2000 },
  ])
  lab.dns(5000, 'a.example')
  assert.deepEqual(lab.drain(5000), [], 'not due')
  assert.deepEqual(lab.drain(5000, true), [{ text: '0', count: 1, first: 5000, last: 5000 }])
})

test('FlowTally separates flows that differ for people, and no others', () => {
  const rows: readonly (readonly [reason: string, differs: boolean, other: (lab: Lab) => void])[] =
    [
      ['the same name in another case', false, (lab) => lab.dns(1, 'A.EXAMPLE')],
      [
        'another client address of the endpoint',
        false,
        (lab) => lab.dns(1, 'a.example', { from: '10.0.0.2' }),
      ],
      ['another name', true, (lab) => lab.dns(1, 'b.example')],
      ['another type', true, (lab) => lab.dns(1, 'a.example', { qtype: 28 })],
      ['another endpoint', true, (lab) => lab.dns(1, 'a.example', { endpoint: 2 })],
      ['another decision', true, (lab) => lab.dns(1, 'a.example', { kind: 'denied' })],
      ['another reason', true, (lab) => lab.dns(1, 'a.example', { reason: 'server' })],
    ]
  for (const [reason, differs, other] of rows) {
    const lab = new Lab()
    lab.dns(0, 'a.example')
    other(lab)
    assert.equal(lab.tally.size, differs ? 2 : 1, reason)
  }
  const lab = new Lab()
  lab.dns(0, 'a.example', { kind: 'unknown-client', endpoint: 0, from: '10.0.0.1' })
  lab.dns(0, 'a.example', { kind: 'unknown-client', endpoint: 0, from: '10.0.0.2' })
  assert.equal(lab.tally.size, 2, 'only its address identifies an unknown client')
})

test('FlowTally separates packets by peer, port and the names of the peer', () => {
  const lab = new Lab()
  lab.packet(0, '192.0.2.1', 443)
  lab.packet(0, '192.0.2.1', 443)
  assert.equal(lab.tally.size, 1)
  lab.packet(0, '192.0.2.2', 443)
  lab.packet(0, '192.0.2.1', 80)
  lab.packet(0, '192.0.2.1', 443, ['a.example'])
  assert.equal(lab.tally.size, 4)
})

test('FlowTally drops reported flows after ten minutes of silence, and then reports them as new', () => {
  const lab = new Lab()
  lab.dns(0, 'a.example')
  lab.dns(0, 'b.example')
  assert.equal(lab.drain(0).length, 2)
  lab.dns(5 * MINUTE, 'b.example')
  lab.drain(10 * MINUTE)
  assert.equal(lab.tally.size, 1, 'b occurred five minutes ago')
  lab.dns(11 * MINUTE, 'a.example')
  assert.deepEqual(
    lab.drain(11 * MINUTE).map(({ text }) => text),
    ['2'],
  )
})

test('FlowTally leaves other endpoints room when one asks a thousand names, and counts the flows without a row', () => {
  const lab = new Lab(64)
  for (let i = 0; i < 1000; i++) lab.dns(0, `n${i}.example`, { endpoint: 7 })
  assert.equal(lab.tally.size, 32, 'all free rows')
  assert.equal(lab.tally.lost, 968)
  for (let i = 0; i < 16; i++) lab.dns(0, `m${i}.example`, { endpoint: 8 })
  assert.equal(lab.tally.size, 48)
  assert.equal(lab.tally.lost, 968)
  lab.drain(0)
  lab.drain(10 * MINUTE)
  assert.equal(lab.tally.size, 0)
  lab.dns(10 * MINUTE, 'again.example', { endpoint: 7 })
  assert.equal(lab.tally.size, 1)
})

test('FlowTally: reported, pending and lost flows are all flows, in any order', () => {
  const step = fc.record({
    name: fc.integer({ min: 0, max: 20 }),
    endpoint: fc.integer({ min: 1, max: 3 }),
    pass: fc.integer({ min: 0, max: 15 * MINUTE }),
    drain: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const lab = new Lab(16)
      let now = 0
      let told = 0
      for (const { name, endpoint, pass, drain } of steps) {
        now += pass
        lab.dns(now, `n${name}.example`, { endpoint })
        if (drain) for (const { count } of lab.drain(now)) told += count
      }
      for (const { count } of lab.drain(now, true)) told += count
      assert.equal(told + lab.tally.lost, steps.length)
      lab.drain(now + 10 * MINUTE)
      assert.equal(lab.tally.size, 0)
    }),
  )
})
