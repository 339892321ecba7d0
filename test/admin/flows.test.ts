import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FLOW_FILTERS, flowView, keptText } from '../../src/admin/views/flows.ts'
import { FLOW_SCHEMAS } from '../../src/admin/document/flow-shapes.ts'
import { loadAllowList } from '../../src/policy/load/allow-list.ts'
import { FLOW_KINDS, type FlowKind } from '../../src/flows/record/flow-kinds.ts'
import { mkAdmin } from '../support/nodes/admin.ts'
import { mkEndpoint, mkPolicies, Node, prefixOf } from '../support/nodes/node.ts'
import { mkDnsFlow } from '../support/nodes/dns-flow.ts'

const TIME = Date.UTC(2026, 0, 2, 3, 4, 5, 678)
const ISO = '2026-01-02T03:04:05.678Z'
const SHOP_LABELS = ['external:tier=web', 'k8s:app=shop']

function mkLab() {
  const node = new Node()
  node.setEndpoints([mkEndpoint('shop', ['10.0.0.1'], ['k8s:app=shop', 'external:tier=web'])])
  node.setPolicies(mkPolicies('egressDeny: [{ toCIDR: [198.18.0.0/16] }]'))
  const { state } = mkAdmin(node)
  const dns = (kind: FlowKind, endpoint: number, name: string): void => {
    const flow = { kind, endpoint, outcome: 1, qtype: 28, rcode: 3, addresses: 2 }
    state.flows.addDns(TIME, mkDnsFlow(name, flow))
  }
  return { node, state, dns }
}

test('flowView shows the answer, and no rcode if no server was asked', () => {
  const { state, dns } = mkLab()
  dns('answered', 1, 'a\\010b.example')
  dns('denied', 99, 'evil.test')
  const shared = {
    time: ISO,
    client: '10.0.0.1',
    type: 'AAAA',
    addresses: 2,
    reason: null,
    rules: [],
  }
  assert.deepEqual(flowView(state, 0, undefined), {
    ...shared,
    number: 0,
    kind: 'answered',
    verdict: 'allow',
    endpoint: 'shop',
    endpointLabels: SHOP_LABELS,
    name: 'a\\010b.example',
    rcode: 'NXDOMAIN',
    outcome: 'exact',
  })
  assert.deepEqual(flowView(state, 1, undefined), {
    ...shared,
    number: 1,
    kind: 'denied',
    verdict: 'deny',
    endpoint: null,
    endpointLabels: [],
    name: 'evil.test',
    rcode: null,
    outcome: null,
  })
})

test('flowView shows a refusal by an allow-list without a line, because no line decided', () => {
  const { node, state } = mkLab()
  const file = '/etc/web.allow'
  const text = '# what the shop needs\nwww.cdn.test\n'
  const { policies } = loadAllowList(text, file, { matchLabels: new Map() })
  node.setPolicies([...policies, ...mkPolicies('egress: [{ toCIDR: [198.18.0.0/16] }]')])
  assert.equal(node.mayAsk('shop', 'evil.test'), false)
  const rule = node.policies.dnsVerdicts.deniedBy
  state.flows.addDns(TIME, mkDnsFlow('evil.test', { kind: 'denied', endpoint: 1, rule }))
  const shown = flowView(state, 0, undefined)
  assert.ok(shown?.kind === 'denied')
  const ofPolicy = { policy: 'policy-0', file: 'policy-0.yaml', line: 5 }
  assert.deepEqual(shown.rules, [ofPolicy, { policy: 'web', file }])
  assert.deepEqual(FLOW_SCHEMAS.FlowRule.parse(shown.rules[1]), { policy: 'web', file })
})

test('flowView shows if the address of a dropped packet is guarded, unless the packet is malformed', () => {
  const { state } = mkLab()
  const peer = prefixOf('169.254.169.254').octets
  const packet = { endpoint: 1, family: 4, peer, protocol: 6, port: 80, identity: 9, rule: 0 }
  for (const reason of ['policy', 'malformed']) {
    state.flows.addPacket(TIME, { ...packet, kind: 'drop', names: [], reason })
  }
  const shown = [0, 1].map((number) => {
    const flow = flowView(state, number, undefined)
    return flow?.kind === 'drop' ? flow.guarded : undefined
  })
  assert.deepEqual(shown, [true, false])
})

test('flowView shows a dropped packet with the labels of its peer and the rules that dropped it', () => {
  const { node, state } = mkLab()
  const id = node.identityOf('198.18.0.0/16')
  const [entry] = [...node.recorder.policies.values()]
  const peer = prefixOf('198.18.0.9').octets
  const packet = { endpoint: 1, family: 4, peer, protocol: 6, port: 443, reason: 'policy' }
  const names = ['a.test', 'b.test']
  const rule = entry?.rule ?? 0
  state.flows.addPacket(TIME, { ...packet, kind: 'drop', identity: id, rule, names })
  state.flows.addPacket(TIME, { ...packet, kind: 'audit', identity: 9, rule: 0, names: [] })
  state.flows.addPolicyLost(TIME, 1, 'prod/web')
  const base = { time: ISO, endpoint: 'shop', endpointLabels: SHOP_LABELS }
  const shown = { peer: '198.18.0.9', protocol: 'TCP', port: 443, reason: 'policy' }
  assert.deepEqual(flowView(state, 0, undefined), {
    ...base,
    ...shown,
    number: 0,
    kind: 'drop',
    verdict: 'deny',
    identity: id,
    labels: ['cidr:198.18.0.0/16', 'reserved:world', 'reserved:world-ipv4'],
    names,
    expiredName: null,
    guarded: false,
    deniedBy: 'rule',
    rules: [{ policy: 'policy-0', file: 'policy-0.yaml', line: 6 }],
  })
  assert.deepEqual(flowView(state, 1, undefined), {
    ...base,
    ...shown,
    number: 1,
    kind: 'audit',
    verdict: 'audit',
    identity: 9,
    labels: ['reserved:world-ipv4'],
    names: [],
    expiredName: null,
    guarded: false,
    deniedBy: 'default',
    rules: [],
  })
  assert.deepEqual(flowView(state, 2, undefined), {
    ...base,
    number: 2,
    kind: 'policy-lost',
    verdict: 'event',
    policies: 'prod/web',
  })
})

test('flowView leaves out flows that the filter does not name, by verdict or by kind', () => {
  const { state, dns } = mkLab()
  dns('denied', 1, 'a.b')
  dns('unknown-client', 0, 'a.b')
  const numbers = (filter: string) =>
    [0, 1].filter((number) => flowView(state, number, filter) !== undefined)
  assert.deepEqual(numbers('deny'), [0, 1])
  assert.deepEqual(numbers('unknown-client'), [1])
  assert.deepEqual(numbers('allow'), [])
  for (const kind of FLOW_KINDS) assert.ok(FLOW_FILTERS.includes(kind))
})

test('flowView shows the name that an endpoint had, also when it is gone or another has its name', () => {
  const { node, state, dns } = mkLab()
  dns('denied', 1, 'a.b')
  node.setEndpoints([mkEndpoint('shop', ['10.0.0.7'], ['k8s:app=new'])])
  const packet = { endpoint: 1, family: 4, protocol: 6, port: 443, reason: 'policy' }
  const peer = prefixOf('198.18.0.9').octets
  const late = { ...packet, peer, identity: 9, rule: 0, names: [] }
  state.flows.addPacket(TIME, { ...late, kind: 'drop' })
  dns('denied', 2, 'a.b')
  node.setEndpoints([])
  const shown = [0, 1, 2].map((number) => {
    const flow = flowView(state, number, undefined)
    return [flow?.endpoint, flow?.endpointLabels]
  })
  assert.deepEqual(shown, [
    ['shop', SHOP_LABELS],
    ['shop', SHOP_LABELS],
    ['shop', ['k8s:app=new']],
  ])
  assert.match(keptText(state, 0), /"endpoint":"shop"/)
})
