// The kernel's programs and their model in memory judge the same packets, in both directions and in the same order. Every verdict and every
// counter is equal. The packets have few different addresses and ports, so they share connections. A third of them has changed octets.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { endpointId } from '../../../src/core/ids.ts'
import type { Changes, PolicyEntry } from '../../../src/datapath/entries.ts'
import {
  ACK,
  FIN,
  RST,
  SYN,
  destinationOptions,
  discovery,
  frame,
  hopByHop,
  icmp,
  raw,
  routing,
  sctp,
  tcp,
  udp,
  type Route,
  type Segment,
} from '../../support/packets.ts'
import { Random } from '../../support/models/random.ts'
import {
  batch,
  commit,
  endpoint,
  LEARNED,
  listener,
  POD,
  policy,
  settle as settlePod,
  type Bench,
} from '../../contract/bench.ts'
import { ebpfMaker, makeEbpfBench } from '../../contract/ebpf-bench.ts'
import { makeMemoryBench } from '../../contract/memory-bench.ts'
import { peersOf, Wire } from '../../contract/wire.ts'

const skip = ebpfMaker.unavailable ?? false
const STEPS = 20_000
const WALKS = 2_000
const WALK_LENGTH = 8
const ON_HOST = endpointId(6)
const LOCAL = [
  '10.0.1.5',
  '10.0.1.5',
  '10.0.1.5',
  'fd00::5',
  'fd00::5',
  '10.0.1.6',
  'fe80::5',
  '::',
]
const REMOTE_4 = ['192.0.2.1', '192.0.2.2', '198.51.100.1', '10.0.9.9', '127.0.0.1']
const REMOTE_6 = ['2001:db8::1', '2001:db8::2', '::1', 'fe80::1', 'ff02::1', 'fd00::1']
const COMPARED = [
  'verdict_allow',
  'verdict_reply',
  'verdict_listener',
  'verdict_neighbour',
  'verdict_audit',
  'verdict_not_enforcing',
  'drop_policy',
  'drop_source',
  'drop_malformed',
  'drop_fragment',
]

const CHANGES: readonly Partial<Changes>[] = [
  { policyUpserts: [policy({ identity: 100, protocol: 6, port: 443 })] },
  { policyRemovals: [policy({ identity: 100, protocol: 6, port: 443 })] },
  { policyUpserts: [policy({ identity: 9, protocol: 17 })] },
  { policyRemovals: [policy({ identity: 9, protocol: 17 })] },
  { policyUpserts: [policy({ identity: 10 })] },
  { policyRemovals: [policy({ identity: 10 })] },
  { policyUpserts: [policy({ protocol: 6, port: 80, verdict: 'deny' })] },
  { policyRemovals: [policy({ protocol: 6, port: 80, verdict: 'deny' })] },
  { policyUpserts: [policy({ protocol: 58, verdict: 'audit' })] },
  { prefixUpserts: batch([['192.0.2.1/32', 100, 9]]) },
  { prefixRemovals: batch([['192.0.2.1/32', 100, 9]]) },
  { prefixUpserts: batch([['2001:db8::/32', 101, 10]]) },
]

describe('ebpf and its model', { skip }, () => {
  test('judge of the kernel equals judge of the model for random packets', () => {
    const seed = 20_260_731
    const random = new Random(seed)
    const benches = [makeEbpfBench(), makeMemoryBench()] as const
    try {
      for (const bench of benches) settle(bench)
      let judged = 0
      for (let step = 0; step < STEPS; step++) {
        if (random.oneIn(50)) {
          const changes = random.pick(CHANGES)
          for (const bench of benches) commit(bench.datapath, changes)
        }
        const direction = random.oneIn(2) ? 'from' : 'to'
        const octets = somePacket(random, direction)
        const id = random.oneIn(4) ? ON_HOST : POD
        const kernel = verdictOf(benches[0], id, direction, octets)
        if (kernel === undefined) continue
        judged++
        const model = benches[1].judge(id, direction, octets)
        const hex = Buffer.from(octets).toString('hex')
        assert.equal(model, kernel, `seed ${seed}, step ${step}: ${direction} ${id} ${hex}`)
      }
      assert.ok(judged > STEPS * 0.9, `${judged} packets could be judged`)
      const [kernel, model] = benches.map(({ datapath }) => datapath.reports.counters())
      for (const name of COMPARED) {
        assert.equal(model?.[name], kernel?.[name], name)
        assert.ok(
          (kernel?.[name] ?? 0) > (name === 'verdict_not_enforcing' ? -1 : 20),
          `${name} was tried`,
        )
      }
    } finally {
      for (const bench of benches) bench.close()
    }
  })

  test('follow of the kernel equals follow of the model on random walks of one TCP connection', () => {
    const seed = 77
    const random = new Random(seed)
    const benches = [makeEbpfBench(), makeMemoryBench()] as const
    const open = [policy({ identity: LEARNED })]
    try {
      for (const bench of benches) settlePod(bench, open)
      for (let walk = 0; walk < WALKS; walk++) {
        const wires = benches.map((bench) => new Wire(bench, 1024 + walk))
        const beginning = random.pick([[], [], ACCEPTED, CONNECTED])
        const steps = Array.from({ length: WALK_LENGTH }, () => random.pick(STEPS_OF_TCP))
        const trail: string[] = []
        for (const step of [...beginning, ...steps]) {
          trail.push(step.name)
          const [kernel, model] = wires.map((wire, i) =>
            step.take(wire, benches[i] ?? benches[0], open),
          )
          assert.deepEqual(model, kernel, `seed ${seed}, walk ${walk}: ${trail.join(', ')}`)
        }
        if (walk % 50 !== 0) continue
        const [kernel, model] = benches.map(peersOf)
        assert.deepEqual(model, kernel, `seed ${seed}, up to walk ${walk}: ${trail.join(', ')}`)
      }
      assert.ok(peersOf(benches[0]).length > WALKS / 50, `${peersOf(benches[0]).length} stay open`)
    } finally {
      for (const bench of benches) bench.close()
    }
  })
})

interface Step {
  readonly name: string
  readonly take: (wire: Wire, bench: Bench, open: readonly PolicyEntry[]) => unknown
}

const outbound = (name: string, flags: number): Step => ({
  name: `out ${name}`,
  take: (wire) => wire.out(flags),
})
const inbound = (name: string, flags: number): Step => ({
  name: `in ${name}`,
  take: (wire) => wire.in(flags),
})

const ACCEPTED = [inbound('SYN', SYN), outbound('SYN-ACK', SYN | ACK), inbound('ACK', ACK)]
const CONNECTED = [outbound('SYN', SYN), inbound('SYN-ACK', SYN | ACK), outbound('ACK', ACK)]
const STEPS_OF_TCP: readonly Step[] = [
  ...[outbound, inbound].flatMap((side) => [
    side('SYN', SYN),
    side('SYN-ACK', SYN | ACK),
    side('ACK', ACK),
    side('ACK', ACK),
    side('FIN', FIN | ACK),
    side('RST', RST),
  ]),
  { name: 'revoke', take: (_, bench, open) => commit(bench.datapath, { policyRemovals: open }) },
  { name: 'allow', take: (_, bench, open) => commit(bench.datapath, { policyUpserts: open }) },
]

function settle(bench: Bench): void {
  bench.datapath.exceptions.setListeners([listener('10.0.9.9', 53), listener('127.0.0.1', 53)])
  const failures = commit(bench.datapath, {
    policyUpserts: [
      policy({ identity: 1 }),
      policy({ endpoint: ON_HOST, identity: 1, protocol: 6 }),
      policy({ endpoint: ON_HOST, identity: 9, protocol: 17, port: 53 }),
    ],
    prefixUpserts: batch([['10.0.9.0/24', 1, 1]]),
    endpointUpserts: [
      endpoint({ hook: bench.interfaceHook(1) }),
      endpoint({ id: ON_HOST, hook: bench.cgroupHook(), sources: [] }),
    ],
  })
  assert.deepEqual(failures, [])
}

/** Undefined if BPF_PROG_TEST_RUN refuses the frame, because it is shorter than the header of its type. */
function verdictOf(
  bench: Bench,
  id: typeof POD,
  direction: 'from' | 'to',
  octets: Uint8Array,
): 'pass' | 'drop' | undefined {
  try {
    return bench.judge(id, direction, octets)
  } catch (error) {
    assert.match(String(error), /EINVAL/)
    return undefined
  }
}

function somePacket(random: Random, direction: 'from' | 'to'): Uint8Array {
  const local = random.pick(LOCAL)
  const remote = random.pick(local.includes(':') ? REMOTE_6 : REMOTE_4)
  const [source, target] = direction === 'from' ? [local, remote] : [remote, local]
  const octets = frame({ source, target, ...someForm(random) }, someSegment(random, direction))
  if (!random.oneIn(3)) return octets
  for (let i = random.below(3); i >= 0; i--) octets[14 + random.below(44)] = random.below(256)
  return random.oneIn(4) ? octets.subarray(0, 34 + random.below(octets.length - 34)) : octets
}

function someForm(random: Random): Partial<Route> {
  const forms: readonly Partial<Route>[] = [
    { hopLimit: 255 },
    { hopLimit: 1, extensions: [hopByHop] },
    { fragment: random.below(4) },
    { fragment: 0, moreFragments: true },
    { vlans: random.oneIn(2) ? ['vlan'] : ['qinq', 'vlan'] },
    { extensions: [hopByHop, destinationOptions, routing(random.below(2))] },
    { options: Uint8Array.of(random.pick([0, 1, 0x94, 131]), random.below(5), 0, 0) },
  ]
  return random.oneIn(3) ? random.pick(forms) : { hopLimit: random.pick([64, 255]) }
}

function someSegment(random: Random, direction: 'from' | 'to'): Segment {
  const [own, other] = [random.pick([40000, 40001, 80]), random.pick([443, 80, 53])]
  const ports = direction === 'from' ? { from: own, to: other } : { from: other, to: own }
  switch (random.below(10)) {
    case 0:
    case 1:
      return udp(ports)
    case 2:
      return sctp(ports)
    case 3:
      return icmp(random.oneIn(2) ? 1 : 58, random.pick([0, 3, 8, 128, 129, 133, 143]))
    case 4:
      return discovery(random.pick([134, 135, 136]), random.pick(REMOTE_6))
    case 5:
      return raw(random.pick([2, 4, 41, 47, 50, 59]))
    default:
      return tcp(ports, random.pick([2, 2, 0x12, 0x12, 0x10, 0x10, 0x10, 0x11, 0x04, 0x14, 3, 6]))
  }
}
