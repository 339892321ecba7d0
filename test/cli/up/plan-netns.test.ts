// What `namegate up --netns` decides from what it found. The function is pure, so each case is a row.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toName } from '../../../src/cli/up/plan.ts'
import { planNetns, type NetnsFacts } from '../../../src/cli/up/plan-netns.ts'
import {
  ABLE,
  BEHIND_STUB,
  HOST,
  INNER,
  LO,
  nic,
  OUTER,
  PLAIN,
  resolvers,
  ROUTE,
  server,
  STUB,
  WAN,
  wordsOf,
} from '../../support/up-facts.ts'

function netns(more: Partial<NetnsFacts>): NetnsFacts {
  return {
    given: 'box',
    name: 'box',
    path: '/run/netns/box',
    named: { name: 'box', number: 3 },
    host: HOST,
    inner: { nics: [LO, INNER], routes: [ROUTE] },
    abilities: ABLE,
    asked: PLAIN,
    files: [PLAIN],
    upstreams: [],
    ...more,
  }
}

const OUTSIDE = 'tproxy ebpf here: box box0/ingress 10.98.0.2 fd00::2: 9.9.9.9:53'
const inside = (servers: string, more = ''): string =>
  `redirect nftables /run/netns/box: box eth0/egress 10.98.0.2 fd00::2 127.0.0.0/8 ::1${more}: ${servers}`
const ROWS: readonly (readonly [why: string, facts: Partial<NetnsFacts>, wanted: string])[] = [
  ['a veth of this host: the daemon stays where the workload cannot change it', {}, OUTSIDE],
  [
    'without eBPF the nftables datapath judges the same interface',
    { abilities: { ...ABLE, noEbpf: 'old' } },
    OUTSIDE.replace('ebpf', 'nftables'),
  ],
  [
    'queries to loopback leave no namespace, so the daemon goes inside; it asks the servers behind the stub',
    { asked: STUB, files: [STUB, BEHIND_STUB] },
    inside('192.0.2.53:53'),
  ],
  [
    'without a nameserver line, programs ask 127.0.0.1',
    { asked: resolvers('/etc/netns/box/resolv.conf'), files: [PLAIN] },
    inside('9.9.9.9:53'),
  ],
  [
    'a macvlan has no other end here',
    {
      inner: {
        nics: [LO, nic({ kind: 'macvlan' }, '10.98.0.2/24', 'fd00::2/64')],
        routes: [ROUTE],
      },
    },
    inside('9.9.9.9:53'),
  ],
  [
    'equal numbers of a third namespace are no proof: the other end must lead to this one',
    { host: { nics: [LO, { ...OUTER, peerNamespace: 4 }], routes: [WAN] } },
    inside('9.9.9.9:53'),
  ],
  ['a namespace without a name cannot be compared', { named: undefined }, inside('9.9.9.9:53')],
  [
    'one daemon of a host intercepts; another goes inside',
    { abilities: { ...ABLE, isIntercepted: true } },
    inside('9.9.9.9:53'),
  ],
  [
    'nftables sees no packets between ports of a bridge',
    {
      abilities: { ...ABLE, noEbpf: 'old' },
      host: { nics: [LO, { ...OUTER, master: 'br0' }], routes: [WAN] },
    },
    inside('9.9.9.9:53'),
  ],
  [
    'eBPF judges at the port of a bridge',
    { host: { nics: [LO, { ...OUTER, master: 'br0' }], routes: [WAN] } },
    OUTSIDE,
  ],
  [
    'each interface with an address is an endpoint, so that none is a way past policy',
    {
      host: {
        nics: [LO, OUTER, nic({ index: 9, name: 'box1', peer: 4, peerNamespace: 3 })],
        routes: [WAN],
      },
      inner: {
        nics: [LO, INNER, nic({ index: 4, name: 'eth1', peer: 9 }, '10.99.0.2/24')],
        routes: [ROUTE],
      },
    },
    'tproxy ebpf here: box box0/ingress 10.98.0.2 fd00::2, box-eth1 box1/ingress 10.99.0.2: 9.9.9.9:53',
  ],
  [
    'two interfaces with the daemon inside: loopback belongs to the first only',
    {
      inner: {
        nics: [LO, INNER, nic({ index: 4, name: 'tun0', kind: 'tun' }, '10.99.0.2/24')],
        routes: [ROUTE],
      },
    },
    inside('9.9.9.9:53', ', box-tun0 tun0/egress 10.99.0.2'),
  ],
  [
    'an interface that is down sends nothing',
    {
      inner: {
        nics: [LO, INNER, nic({ name: 'eth1', isUp: false }, '10.99.0.2/24')],
        routes: [ROUTE],
      },
    },
    OUTSIDE,
  ],
  [
    '--upstream wins over every file',
    { upstreams: [server('2620:fe::fe')] },
    OUTSIDE.replace('9.9.9.9:53', '[2620:fe::fe]:53'),
  ],
  [
    'a route with a gateway is a way out, also without a default route',
    { inner: { nics: [LO, INNER], routes: [{ ...ROUTE, to: '10.0.0.0/8' }] } },
    OUTSIDE,
  ],
]

for (const [why, facts, wanted] of ROWS) {
  test(`planNetns: ${why}`, () => assert.equal(wordsOf(planNetns(netns(facts))), wanted))
}

const WEAKER: readonly (readonly [
  why: RegExp,
  facts: Partial<NetnsFacts>,
  outer: readonly string[],
])[] = [
  [
    /another daemon already intercepts queries/,
    { abilities: { ...ABLE, isIntercepted: true } },
    ['box0'],
  ],
  [/the namespace has no name here/, { named: undefined }, []],
  [/its programs ask a server on loopback/, { asked: STUB, files: [STUB, BEHIND_STUB] }, ['box0']],
]

for (const [why, facts, outer] of WEAKER) {
  test(`planNetns warns that root of the workload can remove rules inside the namespace: ${why}`, () => {
    const plan = planNetns(netns(facts))
    const [warning = ''] = plan.warnings
    assert.match(warning, why)
    assert.match(warning, /^the rules are inside the namespace, because .*CAP_NET_ADMIN/)
    assert.deepEqual(plan.outer, outer)
  })
}

const KERNEL = { to: '10.98.0.0/24', via: undefined, nic: 'eth0' }
const REFUSED: readonly (readonly [why: string, facts: Partial<NetnsFacts>, said: RegExp])[] = [
  [
    'no interface',
    { inner: { nics: [LO], routes: [] } },
    /no interface besides lo.*\n {2}Connect it.*ip link add/,
  ],
  [
    'an interface that is down',
    { inner: { nics: [LO, nic({ isUp: false })], routes: [] } },
    /is down \(eth0\): ip -n box link set eth0 up$/,
  ],
  [
    'an interface without an address',
    { inner: { nics: [LO, nic({})], routes: [] } },
    /no address \(eth0\): ip -n box addr add ADDRESS\/24 dev eth0$/,
  ],
  [
    'no route: the address of the other end is the gateway',
    { inner: { nics: [LO, INNER], routes: [KERNEL] } },
    /no route.*: ip -n box route add default via 10\.98\.0\.1$/,
  ],
  [
    'no route in a namespace that was given as a path',
    { given: '/proc/1/ns/net', named: undefined, inner: { nics: [LO, INNER], routes: [KERNEL] } },
    /: nsenter --net=\/proc\/1\/ns\/net ip route add default via ADDRESS$/,
  ],
  [
    'the only server is on loopback, and no program in the namespace answers there',
    { asked: STUB, files: [STUB] },
    /found only 127\.0\.0\.53:53 in \/etc\/resolv\.conf.*--upstream 9\.9\.9\.9$/,
  ],
]
for (const [why, facts, said] of REFUSED) {
  test(`planNetns refuses ${why}, with a remedy`, () => {
    assert.throws(() => planNetns(netns(facts)), said)
  })
}

test('planNetns warns inside the namespace of what its rules do not see', () => {
  assert.match(planNetns(netns({ asked: STUB, files: [PLAIN] })).warnings.join(), /packet sockets/)
  assert.deepEqual(planNetns(netns({})).warnings, [])
})

test('toName makes a name that labels, files and sockets can have', () => {
  const rows = [
    ['box', 'box'],
    ['ng-12-pod1', 'ng-12-pod1'],
    ['a b/c.d', 'a-b-c-d'],
    ['--x--', 'x'],
    ['...', 'workload'],
    ['y'.repeat(200), 'y'.repeat(40)],
  ]
  for (const [given = '', name] of rows) assert.equal(toName(given), name)
})
