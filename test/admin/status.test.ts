import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FLOW_KINDS } from '../../src/flows/record/flow-kinds.ts'
import { statusView } from '../../src/admin/views/status.ts'
import { mkAdmin } from '../support/nodes/admin.ts'
import { mkEndpoint, mkPolicies, Node } from '../support/nodes/node.ts'
import { learn, mkSlow } from '../support/nodes/slow-node.ts'

const WELL = {
  health: 'ok',
  ready: true,
  notReady: [],
  version: '1.2.3',
  config: null,
  started: '2026-01-02T03:04:05.000Z',
  pid: process.pid,
  mode: 'enforce',
  datapath: {
    kind: 'memory',
    revision: 1,
    desiredRevision: 1,
    refused: 0,
    stalled: false,
    held: 0,
    repaired: 0,
  },
  policyRevision: 0,
  realizedRevision: 0,
  endpoints: { known: 1, enforcing: 1 },
  policies: 0,
  listeners: ['127.0.0.1:5300', '0.0.0.0:10053 (tproxy)'],
  interception: null,
  kubernetes: null,
  intercepting: null,
  kept: null,
  restart: null,
  upstreams: [
    { address: '192.0.2.53:53', answered: true, state: 'up', first: true, rttMs: 0.4, failures: 0 },
  ],
  identityFallbacks: 0,
  audited: { on: false, queries: 0, packets: 0, endpoints: [] },
  limits: [
    { limit: 'pairs', use: 80, bound: 100, hits: 3 },
    { limit: 'queries-in-flight-per-client', use: null, bound: 1, hits: 9 },
  ],
  faults: [],
  warnings: [],
}

const AUDITED_POLICY = `apiVersion: cilium.io/v2
kind: CiliumClusterwideNetworkPolicy
metadata: { name: p, annotations: { namegate.io/audit: "true" } }
spec: { endpointSelector: {}, egress: [{}] }
`

function mkNode(): Node {
  const node = new Node({ defaultEgress: 'deny' })
  node.recorder.hook = { kind: 'attached' }
  node.setEndpoints([mkEndpoint('shop', ['10.0.0.1'])])
  return node
}

test('statusView shows bounds from 80 % and those that were reached, and is ok without faults', () => {
  assert.deepEqual(statusView(mkAdmin(mkNode()).state), WELL)
})

test('statusView shows what is kept over restarts, and warns when the disk refuses writes', () => {
  const use = { generation: 3, imageOctets: 100, journalOctets: 20, age: 1 }
  const faults = { 'no-space': 2, other: 1 }
  for (const isFailing of [false, true]) {
    const { state } = mkAdmin(mkNode(), {
      kept: { use: { ...use, isFailing, damage: [], faults } },
    })
    const { kept, warnings, health } = statusView(state)
    assert.deepEqual(kept, { generation: 3, image: 100, journal: 20, age: 1, faults: 3 })
    assert.equal(
      warnings.some((text) => text.includes('the state folder cannot be written')),
      isFailing,
    )
    assert.equal(health, 'ok', 'it serves and enforces')
  }
  const taken = 'the folder is in use by the namegate with pid 7'
  const kept = { use: { ...use, isFailing: true, taken, damage: [], faults } }
  const { health, warnings } = statusView(mkAdmin(mkNode(), { kept }).state)
  assert.deepEqual([health, warnings], ['degraded', [taken]], 'two daemons are one too many')
})

test('statusView counts what audit let pass, for the endpoints with the most, also after audit was switched off', () => {
  const node = mkNode()
  const names = Array.from({ length: 12 }, (_, i) => `e${i + 1}`)
  node.setEndpoints(names.map((name, i) => mkEndpoint(name, [`10.0.0.${i + 1}`])))
  const { state } = mkAdmin(node)
  const { verdicts } = state.flows
  const ids = [...node.endpoints.registry].map(({ id }) => id)
  verdicts.keep(node.endpoints.registry)
  for (const [i, id] of ids.entries()) {
    for (let n = 0; n < i; n++) verdicts.add(FLOW_KINDS.indexOf('audited'), id)
  }
  verdicts.add(FLOW_KINDS.indexOf('audit'), ids[1] ?? 0)
  node.recorder.mode.set('audit')
  const { audited } = statusView(state)
  assert.deepEqual(
    { ...audited, endpoints: [] },
    { on: true, queries: 66, packets: 1, endpoints: [] },
  )
  assert.deepEqual(audited.endpoints.slice(0, 2), [
    { name: 'e12', queries: 11, packets: 0 },
    { name: 'e11', queries: 10, packets: 0 },
  ])
  assert.equal(audited.endpoints.length, 10)
  node.recorder.mode.set('enforce')
  node.setEndpoints([mkEndpoint('e2', ['10.0.0.2'])])
  verdicts.keep(node.endpoints.registry)
  assert.deepEqual(statusView(state).audited, {
    on: false,
    queries: 66,
    packets: 1,
    endpoints: [{ name: 'e2', queries: 1, packets: 1 }],
  })
})

test('statusView says that audit is on where it audits an endpoint or a policy', () => {
  const node = mkNode()
  const own = mkAdmin(node, { auditOf: () => ({ on: true, origin: 'run time' }) })
  assert.ok(statusView(own.state).audited.on)
  assert.ok(!statusView(mkAdmin(node).state).audited.on)
  node.setPolicies(mkPolicies(AUDITED_POLICY))
  assert.ok(statusView(mkAdmin(node).state).audited.on)
})

test('statusView shows interception if a listener is transparent', () => {
  const network = { interception: () => 'in force', isIntercepting: () => true }
  const { state } = mkAdmin(mkNode(), network)
  assert.deepEqual(statusView(state), { ...WELL, interception: 'in force', intercepting: true })
})

test('statusView warns of an endpoint whose interface no listener intercepts', () => {
  const node = mkNode()
  const own = mkAdmin(node, { isMissed: (name) => name === 'veth9' })
  assert.deepEqual(statusView(own.state).warnings, WELL.warnings)
  node.setEndpoints([
    {
      ...mkEndpoint('pod', ['10.0.0.9']),
      hook: { kind: 'interface', name: 'veth9', side: 'ingress' },
    },
  ])
  assert.deepEqual(
    statusView(own.state).warnings.filter((text) => text.includes('listener')),
    ['no listener intercepts the DNS of pod (veth9): add the interface to listeners[].interfaces'],
  )
})

test('statusView is degraded by faults, by reasons against readiness, and by refused entries', () => {
  const node = mkNode()
  const position = { file: 'e.yaml', line: 2, column: 3 }
  const faulty = mkAdmin(node, { faults: () => [{ position, message: 'found x' }] })
  const fault = { ...position, message: 'found x' }
  assert.deepEqual(statusView(faulty.state), { ...WELL, health: 'degraded', faults: [fault] })
  const unready = mkAdmin(node, {
    notReady: () => ['policy is not loaded'],
    upstreams: () => [
      {
        address: '192.0.2.53:53',
        answered: undefined,
        state: 'failing',
        first: true,
        rttMs: undefined,
        failures: 2,
      },
    ],
  })
  assert.deepEqual(statusView(unready.state), {
    ...WELL,
    health: 'degraded',
    ready: false,
    notReady: ['policy is not loaded'],
    upstreams: [
      {
        address: '192.0.2.53:53',
        answered: null,
        state: 'failing',
        first: true,
        rttMs: null,
        failures: 2,
      },
    ],
  })
  node.recorder.refuse = () => true
  node.setPolicies(mkPolicies('egress: [{ toCIDR: [198.18.0.0/16] }]'))
  const { health, datapath } = statusView(mkAdmin(node).state)
  assert.equal(health, 'degraded')
  assert.ok(datapath.refused > 0)
})

test('statusView warns of a policy that selects no endpoint', () => {
  const node = mkNode()
  node.setPolicies(mkPolicies('endpointSelector: { matchLabels: { a: b } }\negress: [{}]'))
  const { warnings, policies } = statusView(mkAdmin(node).state)
  assert.deepEqual([warnings, policies], [['policy policy-0 selects no endpoint'], 1])
})

test('statusView warns of endpoints whose packets this host does not forward', () => {
  const node = mkNode()
  const names = ['a', 'b', 'c', 'd', 'e', 'f']
  node.setEndpoints(names.map((name, i) => mkEndpoint(name, [`10.0.0.${i + 1}`])))
  const rows = [
    [[], []],
    [['b'], [/does not forward.* of endpoint b hang: sysctl -w x=1$/]],
    [names, [/ of endpoints a, b, c, d and 2 more hang: sysctl -w x=1$/]],
  ] as const
  for (const [stuck, said] of rows) {
    const isStuck = new Set<string>(stuck)
    const { state } = mkAdmin(node, {
      forwardingRemedy: ({ name }) => (isStuck.has(name) ? 'sysctl -w x=1' : undefined),
    })
    const { warnings } = statusView(state)
    assert.equal(warnings.length, said.length)
    for (const [i, words] of said.entries()) assert.match(warnings[i] ?? '', words)
  }
})

test('statusView shows a running commit, and that the datapath is stalled after a second', () => {
  const { node, slow } = mkSlow()
  const { state } = mkAdmin(node, { releases: { count: 7 } })
  const before = statusView(state).datapath
  assert.deepEqual(
    [before.stalled, before.desiredRevision, before.held],
    [false, before.revision, 7],
  )
  learn(node, 'a.x', '192.0.2.1')
  node.clock.advance(900)
  const { revision } = before
  const during = statusView(state).datapath
  assert.deepEqual(
    [during.revision, during.desiredRevision, during.stalled],
    [revision, revision + 1, false],
  )
  node.clock.advance(200)
  assert.equal(statusView(state).datapath.stalled, true)
  assert.equal(node.core.committer.watch.stalls, 1)
  slow.end()
  assert.equal(statusView(state).datapath.stalled, false)
  assert.equal(node.core.committer.watch.stalls, 1, 'one stall, counted once')
  assert.equal(node.core.committer.watch.times.sum, 1100, 'the time of the commit')
})
