// What `namegate up --interface` and `--cgroup` decide from what they found. The functions are pure, so each case is a row.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { planCgroup, planInterface, type InterfaceFacts } from '../../../src/cli/up/plan-host.ts'
import {
  ABLE,
  BEHIND,
  BEHIND_STUB,
  HOST,
  OUTER,
  PLAIN,
  STUB,
  WAN,
  nic,
  wordsOf,
} from '../../support/up-facts.ts'

function behind(more: Partial<InterfaceFacts>): InterfaceFacts {
  return { ...BEHIND, ...more }
}

const INTERFACE_ROWS: readonly (readonly [
  why: string,
  facts: Partial<InterfaceFacts>,
  wanted: string | RegExp,
])[] = [
  [
    'without more it is the networks of the interface',
    {},
    'tproxy ebpf here: box0 box0/ingress 10.98.0.0/24: 9.9.9.9:53',
  ],
  [
    'the other end is more exact',
    { otherEnd: ['10.98.0.2'] },
    'tproxy ebpf here: box0 box0/ingress 10.98.0.2: 9.9.9.9:53',
  ],
  [
    'what is given wins',
    { otherEnd: ['10.98.0.2'], addresses: ['10.0.0.0/8'] },
    'tproxy ebpf here: box0 box0/ingress 10.0.0.0/8: 9.9.9.9:53',
  ],
  [
    'routes to an interface name its workloads; link-local and multicast ones do not',
    {
      host: {
        nics: [nic({ index: 7, name: 'box0' }, '169.254.1.1/32')],
        routes: [
          { to: '10.1.0.5', via: undefined, nic: 'box0' },
          { to: 'fe80::/64', via: undefined, nic: 'box0' },
          { to: 'ff00::/8', via: undefined, nic: 'box0' },
        ],
      },
    },
    'tproxy ebpf here: box0 box0/ingress 10.1.0.5: 9.9.9.9:53',
  ],
  [
    'a resolver on loopback can be asked from this host',
    { files: [STUB, BEHIND_STUB] },
    'tproxy ebpf here: box0 box0/ingress 10.98.0.0/24: 127.0.0.53:53',
  ],
  [
    'no such interface',
    { interface: 'nope' },
    /^UnavailableError: No interface "nope".*found box0\n {2}For .*--netns/,
  ],
  [
    'a misspelt interface of many: the nearest first, and at most ten',
    {
      interface: 'vetg9',
      host: {
        nics: Array.from({ length: 12 }, (_, i) => nic({ name: `pod${i}` })).concat(
          nic({ name: 'veth9' }),
        ),
        routes: [],
      },
    },
    /found veth9, pod0, pod1, .*pod8 and 3 more\n/,
  ],
  ['loopback has no workload behind it', { interface: 'lo' }, /--cgroup/],
  [
    'the interface of the default route',
    { interface: 'wan0', host: { nics: [nic({ name: 'wan0' }, '192.0.2.1/24')], routes: [WAN] } },
    /leads to the internet\n {2}.*--cgroup/,
  ],
  [
    'an interface that is down',
    { host: { nics: [{ ...OUTER, isUp: false }], routes: [] } },
    /ip link set box0 up/,
  ],
  [
    'no address and no route',
    { host: { nics: [{ ...OUTER, addresses: [] }], routes: [] } },
    /^UnavailableError: Cannot find .* leads to it\n {2}Give .*--address 10\.0\.0\.5/,
  ],
  [
    'a port of a bridge without eBPF',
    {
      abilities: { ...ABLE, noEbpf: 'the kernel is 4.19' },
      host: { nics: [{ ...OUTER, master: 'br0' }], routes: [] },
    },
    /port of br0, which needs eBPF: the kernel is 4\.19/,
  ],
]
for (const [why, facts, wanted] of INTERFACE_ROWS) {
  test(`planInterface: ${why}`, () => {
    if (typeof wanted === 'string') assert.equal(wordsOf(planInterface(behind(facts))), wanted)
    else assert.throws(() => planInterface(behind(facts)), wanted)
  })
}

test('planInterface warns that packets between the ports of a bridge do not pass the bridge', () => {
  const ports = ['b3', 'uplink'].map((name, i) => nic({ index: 20 + i, name, master: 'box0' }))
  const warningsOf = (count: number): string =>
    planInterface(
      behind({ host: { nics: [OUTER, ...ports.slice(0, count)], routes: [] } }),
    ).warnings.join()
  assert.match(warningsOf(2), /^packets between the ports of box0 \(b3, uplink\) .*--interface b3/)
  assert.equal(warningsOf(1), '')
})

const CGROUP = { name: 'build', cgroup: 'build.slice', host: HOST, upstreams: [] }

test('planCgroup asks servers outside of the host', () => {
  const plan = planCgroup({ ...CGROUP, abilities: ABLE, files: [STUB, BEHIND_STUB] })
  assert.equal(wordsOf(plan), 'redirect ebpf here: build build.slice: 192.0.2.53:53')
  assert.match(plan.warnings.join(), /packet sockets.* setpriv --bounding-set -net_raw COMMAND$/)
})

for (const [why, more, said] of [
  ['without eBPF', { abilities: { ...ABLE, noEbpf: 'old' } }, /only the eBPF.*old\n {2}.*--netns/],
  [
    'without a server outside, because a stub would ask namegate again',
    { files: [STUB] },
    /--upstream/,
  ],
] as const) {
  test(`planCgroup refuses ${why}`, () => {
    assert.throws(() => planCgroup({ ...CGROUP, abilities: ABLE, files: [PLAIN], ...more }), said)
  })
}
