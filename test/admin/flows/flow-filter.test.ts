// Filters of flows: what each selects in a ring with one flow of every kind, and which filters are refused.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RingFacts } from '../../../src/admin/flows/flow-facts.ts'
import { filterTexts, readFlowFilter } from '../../../src/admin/flows/flow-filter.ts'
import { readFlowQuery } from '../../../src/admin/flows/flow-query.ts'
import { readRowFilter } from '../../../src/admin/row-filter.ts'
import { mkDnsFlow } from '../../support/nodes/dns-flow.ts'
import { mkAdmin } from '../../support/nodes/admin.ts'
import { mkEndpoint, Node, prefixOf, wireOf } from '../../support/nodes/node.ts'

function mkLab() {
  const node = new Node()
  node.setEndpoints([mkEndpoint('shop', ['10.0.0.1']), mkEndpoint('mail', ['10.0.0.2'])])
  const { state } = mkAdmin(node)
  const { flows } = state
  flows.addDns(0, mkDnsFlow('WWW.x.test', { kind: 'answered', endpoint: 1 }))
  flows.addDns(1, mkDnsFlow('evil.test', { kind: 'denied', endpoint: 2, from: '10.0.0.2' }))
  flows.addDns(
    2,
    mkDnsFlow('x.test', { kind: 'unknown-client', endpoint: 0, family: 6, from: '2001:db8::7' }),
  )
  const packet = { endpoint: 1, family: 4, identity: 9, rule: 0, reason: 'policy' }
  const peer = prefixOf('198.18.0.9').octets
  const names = ['a.x.test', 'b.test']
  flows.addPacket(3, { ...packet, kind: 'drop', peer, protocol: 6, port: 443, names })
  const other = prefixOf('2001:db8::9').octets
  flows.addPacket(4, {
    ...packet,
    ...{ kind: 'audit', family: 6, peer: other, protocol: 17, port: 8053, names: [] },
  })
  flows.addPolicyLost(5, 1, 'prod/web')
  const wire = wireOf('old.test')
  flows.addExpiredUse(6, {
    ...{ endpoint: 2, family: 4, octets: prefixOf('198.18.0.7').octets, addressAt: 0 },
    ...{ wire, nameAt: 0, nameLength: wire.length, expired: 3 },
  })
  return { node, state }
}

function select(query: string, { state } = mkLab()): readonly number[] | string {
  const read = readFlowFilter(filterTexts(new URLSearchParams(query)))
  if (read.kind === 'bad') return read.reason
  const facts = new RingFacts(state)
  return Array.from({ length: state.flows.count }, (_, number) => number).filter((number) => {
    facts.number = number
    return read.value.accepts(facts)
  })
}

test('readFlowFilter takes a name with the escapes of flows', () => {
  const lab = mkLab()
  lab.state.flows.addDns(7, mkDnsFlow('odd\\032name.test', { kind: 'denied', endpoint: 1 }))
  assert.deepEqual(select('name=Odd%5C032name.test', lab), [7])
  assert.deepEqual(select('not-name=odd%5C032name.test.', lab), [0, 1, 2, 3, 4, 5, 6])
  assert.deepEqual(select('name=www%5C.x.test', lab), [], 'a dot inside a label')
  assert.deepEqual(select('name=%5C119ww.x.test', lab), [0], 'a plain octet')
  assert.deepEqual(select('name=odd%5C3name.test', lab), 'name: bad escape: expected \\DDD')
})

test('readFlowFilter selects flows by each field, by several values, and without values', () => {
  const rows: readonly (readonly [query: string, numbers: readonly number[], reason: string])[] = [
    ['', [0, 1, 2, 3, 4, 5, 6], 'no filter'],
    ['endpoint=shop', [0, 3, 4, 5], 'an endpoint'],
    ['endpoint=shop&endpoint=mail', [0, 1, 3, 4, 5, 6], 'two endpoints are alternatives'],
    ['not-endpoint=shop', [1, 2, 6], 'another endpoint, or none'],
    ['name=www.x.test', [0], 'a name in another case'],
    ['name=**.x.test', [0, 3], 'a pattern for questions, and for names of peers'],
    ['name=*.test', [1, 2, 3, 6], 'one label, and the name of an expired use'],
    ['name=x.test.', [2], 'a name with a final dot, which is no end of another name'],
    ['name=*.x.*', [0, 3], 'a star at the end'],
    ['not-name=*', [4, 5], 'flows without a name'],
    ['address=10.0.0.0/8', [0, 1], 'a prefix of clients'],
    ['address=198.18.0.9', [3], 'an address of a peer'],
    ['address=2001:db8::/32', [2, 4], 'IPv6'],
    ['address=0.0.0.0/0', [0, 1, 3, 6], 'all of IPv4'],
    ['not-address=::/0', [0, 1, 3, 5, 6], 'all but IPv6'],
    ['port=443', [3], 'a port, which DNS decisions do not have'],
    ['port=8000-8100&port=443', [3, 4], 'a range or a port'],
    ['port=444', [], 'a port that no packet has'],
    ['not-port=443', [0, 1, 2, 4, 5, 6], 'flows without a port stay'],
    ['protocol=udp', [4], 'a protocol of packets, though a DNS query can be UDP'],
    ['protocol=6', [3], 'a number'],
    ['protocol=DNS', [0, 1, 2], 'DNS decisions'],
    ['not-protocol=dns', [3, 4, 5, 6], 'all but DNS decisions'],
    ['verdict=deny', [1, 2, 3], 'a verdict'],
    ['verdict=deny&not-verdict=drop', [1, 2], 'a verdict without one of its kinds'],
    ['verdict=event', [5, 6], 'events'],
    ['verdict=denied&verdict=audit', [1, 4], 'two kinds'],
    ['verdict=deny&endpoint=shop', [3], 'two filters must both match'],
    ['not-endpoint=shop&not-verdict=deny', [6], 'each filter leaves out for itself'],
  ]
  for (const [query, numbers, reason] of rows) {
    assert.deepEqual(select(query), numbers, `${reason}: ${query}`)
  }
})

test('readFlowFilter refuses wrong values, and filters that can match no flow', () => {
  const rows: readonly (readonly [query: string, fault: RegExp])[] = [
    ['verdict=denyd', /^verdict: found "denyd", expected allow, .*; did you mean deny\?$/],
    ['not-verdict=x', /^not-verdict: found "x"/],
    ['name=a..b', /^name: found an empty label/],
    ['address=1.2.3', /^address: expected an address or prefix, found "1.2.3"$/],
    ['port=https', /^port: found "https", expected a port such as 443/],
    ['port=9-8', /^port: found "9-8"/],
    ['port=65536', /^port: found "65536"/],
    ['port=1-2-3', /^port: found "1-2-3"/],
    ['protocol=http', /^protocol: found "http", expected icmp, tcp, /],
    ['protocol=0', /^protocol: found "0"/],
    [
      'port=443&verdict=denied',
      /^no flow can match: only flows of kind drop, audit have port 443, and the other filters leave denied$/,
    ],
    ['protocol=tcp&verdict=allow', /only flows of kind drop, audit have protocol tcp/],
    ['protocol=dns&port=53', /^no flow can match: only flows of kind drop, audit have port 53/],
    ['protocol=dns&verdict=drop', /have protocol dns, and the other filters leave drop$/],
    ['name=a.b&verdict=policy-lost', /have name a\.b, and the other filters leave policy-lost$/],
    ['endpoint=shop&verdict=unknown-client', /and the other filters leave unknown-client$/],
    ['verdict=deny&not-verdict=deny', /^no flow can match: verdict deny is wanted and left out/],
    ['verdict=denied&not-verdict=deny', /^no flow can match: the verdicts leave no kind of flow$/],
    ['endpoint=a&not-endpoint=a', /^no flow can match: endpoint a is wanted and left out at once$/],
  ]
  for (const [query, fault] of rows) assert.match(String(select(query)), fault, query)
})

test('readFlowQuery refuses unknown parameters, and endpoints that do not exist', () => {
  const { state } = mkLab()
  const rows: readonly (readonly [query: string, fault: RegExp])[] = [
    ['endpont=shop', /^unknown parameter "endpont"; did you mean endpoint\?$/],
    ['zzzz=1', /^unknown parameter "zzzz"; expected follow, last, since, endpoint, /],
    ['endpoint=shopp', /^no endpoint is named "shopp"; did you mean shop\?$/],
    ['not-endpoint=zzz', /^no endpoint is named "zzz"$/],
    ['last=few', /^last: expected a number from 0 to 999999999$/],
    ['since=yesterday', /^since: expected a duration/],
    ['verdict=x', /^verdict: found "x"/],
  ]
  for (const [query, fault] of rows) {
    const read = readFlowQuery(state, new URLSearchParams(query))
    assert.ok(read.kind === 'bad', query)
    assert.match(read.reason, fault, query)
  }
  const good = readFlowQuery(state, new URLSearchParams('last=5&since=1s&follow=1&endpoint=shop'))
  assert.ok(good.kind === 'ok')
  const { last, from, follow } = good.value
  assert.deepEqual([last, from, follow], [5, state.clock.wall() - 1000, true])
})

test('an endpoint that is gone can be a filter while the ring has flows of it', () => {
  const { node, state } = mkLab()
  node.setEndpoints([mkEndpoint('mail', ['10.0.0.2']), mkEndpoint('idle', ['10.0.0.3'])])
  node.setEndpoints([mkEndpoint('mail', ['10.0.0.2'])])
  const idle = readFlowQuery(state, new URLSearchParams('endpoint=idle'))
  assert.deepEqual(idle, { kind: 'bad', reason: 'no endpoint is named "idle"' })
  const read = readFlowQuery(state, new URLSearchParams('endpoint=shop'))
  assert.ok(read.kind === 'ok')
  const facts = new RingFacts(state)
  const found = Array.from({ length: state.flows.count }, (_, number) => number).filter(
    (number) => {
      facts.number = number
      return read.value.filter.accepts(facts)
    },
  )
  assert.deepEqual(found, [0, 3, 4, 5])
  const rows = readRowFilter(state, new URLSearchParams('endpoint=shop'))
  assert.deepEqual(rows, { kind: 'bad', reason: 'no endpoint is named "shop"' })
})
