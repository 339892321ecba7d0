// Every view as whole values, over a node with one endpoint, two policies and a few learned names.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { endpointRows } from '../../src/admin/views/endpoints.ts'
import { identityRows, ipcacheRows } from '../../src/admin/views/ipcache.ts'
import { nameRows } from '../../src/admin/views/names.ts'
import { policyRows } from '../../src/admin/views/policies.ts'
import { collect } from '../../src/admin/views/rows.ts'
import { selectorRows } from '../../src/admin/views/selectors.ts'
import { mkAdmin } from '../support/nodes/admin.ts'
import { mkEndpoint, mkPolicies, Node } from '../support/nodes/node.ts'

const POLICIES = mkPolicies(
  `endpointSelector: { matchLabels: { app: shop } }
egress:
  - toFQDNs: [{ matchPattern: '*.X.example' }, { matchName: w.x.example }]
    toPorts: [{ ports: [{ port: '443', protocol: TCP }] }]
  - toEntities: [host]`,
  `apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: idle, namespace: prod }
spec:
  endpointSelector: { matchLabels: { app: nobody } }
  egress: [{ toCIDR: [198.18.0.0/16] }]`,
)

function mkNode(): Node {
  const node = new Node({ nodeAddresses: ['192.0.2.1'] })
  const shop = mkEndpoint('shop', ['10.0.0.1', 'fd00::/64'], ['external:app=shop', 'k8s:a=b'])
  node.setEndpoints([shop])
  node.setPolicies(POLICIES)
  return node
}

test('endpointRows has the shape of the contract, with the reason why an endpoint is not fenced', () => {
  const node = mkNode()
  const { state } = mkAdmin(node)
  node.recorder.hook = { kind: 'attached' }
  const row = {
    id: 1,
    name: 'shop',
    addresses: ['10.0.0.1', 'fd00::/64'],
    labels: ['external:app=shop', 'k8s:a=b'],
    origin: '',
    enforcing: true,
    reason: '',
    audit: false,
    policies: ['policy-0'],
    policyRevision: 1,
    realizedRevision: 1,
    adoptedFlows: 0,
  }
  assert.deepEqual([...endpointRows(state)], [row])
  node.recorder.hook = { kind: 'waiting', reason: 'no interface lxc-shop' }
  const waiting = { ...row, enforcing: false, reason: 'no interface lxc-shop' }
  assert.deepEqual([...endpointRows(state)], [waiting])
  node.recorder.hook = { kind: 'unfenced' }
  assert.equal([...endpointRows(state)][0]?.reason, 'datapath memory enforces nothing')
  node.recorder.hook = { kind: 'attached' }
  node.recorder.mode.set('bypass')
  assert.deepEqual([...endpointRows(state)], [{ ...row, enforcing: false, reason: 'mode bypass' }])
})

test('endpointRows names the level and the place of the audit setting', () => {
  const node = mkNode()
  node.recorder.hook = { kind: 'attached' }
  const shown = (on: boolean, origin: string | undefined): unknown => {
    const { state } = mkAdmin(node, { auditOf: () => ({ on, origin }) })
    const [row] = [...endpointRows(state)]
    return [row?.audit, row?.reason]
  }
  assert.deepEqual(shown(false, undefined), [false, ''])
  assert.deepEqual(shown(true, 'run time'), [true, 'audit: run time'])
  assert.deepEqual(shown(false, 'run time'), [false, 'audit off: run time'])
  node.setPolicies(POLICIES.map((policy) => ({ ...policy, audited: true })))
  const ofPolicy = 'audit: policies policy-0'
  assert.deepEqual(shown(false, undefined), [false, ofPolicy], 'the endpoint is not as a whole')
  node.recorder.mode.set('audit')
  const all = `audit: endpoints file; audit: node, config; ${ofPolicy}`
  assert.deepEqual(shown(true, 'endpoints file'), [true, all])
})

test('policyRows has a row for each document, and one for a rejected file', () => {
  const node = mkNode()
  const fault = { position: { file: 'bad.yaml', line: 3, column: 7 }, message: 'found x' }
  const { state } = mkAdmin(node, {
    policyFiles: () => [
      { path: 'p.yaml', policies: POLICIES, state: 'last-good', faults: [fault] },
      { path: 'bad.yaml', policies: [], state: 'rejected', faults: [fault] },
      { path: 'empty.yaml', policies: [], state: 'in-force', faults: [] },
    ],
  })
  const error = 'bad.yaml:3:7: found x'
  const shared = { file: 'p.yaml', state: 'last-good', error }
  assert.deepEqual(
    [...policyRows(state)],
    [
      {
        name: 'policy-0',
        namespace: null,
        kind: 'CiliumClusterwideNetworkPolicy',
        endpoints: 1,
        selectors: ['*.x.example', 'host', 'w.x.example'],
        unseen: ['*.x.example', 'w.x.example'],
        audited: false,
        ...shared,
      },
      {
        name: 'idle',
        namespace: 'prod',
        kind: 'CiliumNetworkPolicy',
        endpoints: 0,
        selectors: ['198.18.0.0/16'],
        unseen: [],
        audited: false,
        ...shared,
      },
      {
        name: '',
        namespace: null,
        kind: null,
        file: 'bad.yaml',
        endpoints: 0,
        selectors: [],
        unseen: [],
        audited: false,
        state: 'rejected',
        error,
      },
    ],
  )
})

test('selectorRows gives identities in order, names by label and the policies', () => {
  const node = mkNode()
  const { id } = node.endpoint('shop')
  node.learn(id, 'w.x.example', ['198.51.100.1'])
  node.learn(id, 'v.x.example', ['198.51.100.2'])
  node.learn(id, 'other.example', ['198.51.100.3'])
  const rows = collect(selectorRows(mkAdmin(node).state))
  const star = node.selectedBy('*.x.example')
  const shared = { kind: 'fqdn', identities: true, seen: true, policies: ['policy-0'] }
  assert.deepEqual(
    rows.map((row) => ({ ...row, identities: row.identities.length > 0 })),
    [
      { ...shared, selector: '*.x.example', names: 2 },
      { ...shared, selector: 'w.x.example', names: 1 },
      {
        selector: '198.18.0.0/16',
        kind: 'cidr',
        identities: true,
        names: 0,
        seen: null,
        policies: ['prod/idle'],
      },
    ],
  )
  assert.deepEqual(rows[0]?.identities, star)
  assert.ok(star.length >= 2, 'the set of the pattern alone and the one with the name')
})

test('nameRows has one row for each (endpoint, name), with expiry and state of each address', () => {
  const node = mkNode()
  const now = node.clock.wall() - node.clock.now() + Math.floor(node.clock.now() / 1000) * 1000
  const { id } = node.endpoint('shop')
  node.learn(id, 'W.x.example', ['198.51.100.1'], 5)
  node.learn(id, 'odd\\009name.example', ['2001:db8:0:0::1'], 300)
  const expires = (seconds: number) => new Date(now + seconds * 1000).toISOString()
  const rows = [
    {
      name: 'w.x.example',
      endpoint: 'shop',
      selectors: ['*.x.example', 'w.x.example'],
      addresses: [{ address: '198.51.100.1', expires: expires(5), state: 'live' }],
    },
    {
      name: 'odd\\009name.example',
      endpoint: 'shop',
      selectors: [],
      addresses: [{ address: '2001:db8::1', expires: expires(300), state: 'live' }],
    },
  ]
  const { state } = mkAdmin(node)
  assert.deepEqual(collect(nameRows(state)), rows)
  node.clock.advance(6000)
  const [first] = collect(nameRows(state))
  assert.deepEqual(first?.addresses, [
    { address: '198.51.100.1', expires: expires(5), state: 'grace' },
  ])
})

test('nameRows keeps endpoints apart, and continues when names are removed between two rows', () => {
  const node = mkNode()
  node.setEndpoints([mkEndpoint('a', ['10.0.0.1']), mkEndpoint('b', ['10.0.0.2'])])
  for (const name of ['a', 'b']) node.learn(node.endpoint(name).id, 'x.y', ['192.0.2.9'])
  for (let i = 0; i < 600; i++) node.learn(node.endpoint('a').id, `n${i}.y`, ['192.0.2.10'])
  const rows = nameRows(mkAdmin(node).state)[Symbol.iterator]()
  const seen: string[] = []
  for (let i = 0; i < 2; i++) {
    const next = rows.next()
    if (next.done !== true && next.value !== undefined) seen.push(next.value.endpoint)
  }
  assert.deepEqual(new Set(seen), new Set(['a', 'b']))
  node.setEndpoints([mkEndpoint('b', ['10.0.0.2'])])
  let pauses = 0
  let left = 0
  for (let next = rows.next(); next.done !== true; next = rows.next()) {
    if (next.value === undefined) pauses++
    else left++
  }
  assert.equal(left, 0, 'what the other endpoint learned is gone')
  assert.ok(pauses >= 2, 'long tables are left now and then')
})

test('ipcacheRows has identity, labels and every owner', () => {
  const node = mkNode()
  node.learn(node.endpoint('shop').id, 'w.x.example', ['198.18.0.7'])
  node.learn(node.endpoint('shop').id, 'other.example', ['198.18.0.8'])
  const rows = collect(ipcacheRows(mkAdmin(node).state))
  assert.deepEqual(rows.map(({ prefix }) => prefix).sort(), [
    '10.0.0.1/32',
    '192.0.2.1/32',
    '198.18.0.0/16',
    '198.18.0.7/32',
    'fd00::/64',
  ])
  const fqdns = ['fqdn:*.x.example', 'fqdn:w.x.example']
  assert.deepEqual(
    rows.filter(({ prefix }) => prefix.startsWith('198.18.') || prefix.startsWith('192.')),
    [
      {
        prefix: '192.0.2.1/32',
        identity: 1,
        labels: ['reserved:host'],
        owners: [{ kind: 'node', name: 'node', labels: ['reserved:host'] }],
      },
      {
        prefix: '198.18.0.0/16',
        identity: node.identityOf('198.18.0.0/16'),
        labels: ['cidr:198.18.0.0/16', 'reserved:world', 'reserved:world-ipv4'],
        owners: [{ kind: 'policy', name: 'prod/idle', labels: ['cidr:198.18.0.0/16'] }],
      },
      {
        prefix: '198.18.0.7/32',
        identity: node.identityOf('198.18.0.7'),
        labels: ['cidr:198.18.0.0/16', ...fqdns, 'reserved:world', 'reserved:world-ipv4'],
        owners: [{ kind: 'name', name: 'w.x.example', labels: fqdns }],
      },
    ],
  )
})

test('identityRows lists every number of a prefix', () => {
  const node = mkNode()
  node.learn(node.endpoint('shop').id, 'w.x.example', ['198.51.100.1'])
  const { state } = mkAdmin(node)
  const rows = collect(identityRows(state))
  const numbers = new Set(rows.map(({ id }) => id))
  for (const { identity } of collect(ipcacheRows(state))) assert.ok(numbers.has(identity))
  assert.deepEqual(rows[0], {
    id: 1,
    labels: ['reserved:host'],
    references: 1,
    preallocated: false,
  })
  assert.deepEqual(
    rows.find(({ id }) => id === node.identityOf('198.51.100.1')),
    {
      id: node.identityOf('198.51.100.1'),
      labels: ['fqdn:*.x.example', 'fqdn:w.x.example', 'reserved:world', 'reserved:world-ipv4'],
      references: 3,
      preallocated: true,
    },
  )
})
