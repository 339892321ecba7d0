// What is enforced, read back, and its differences from what is wanted.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { datapathRows } from '../../src/admin/views/datapath.ts'
import { collect } from '../../src/admin/views/rows.ts'
import { differenceRows } from '../../src/admin/views/verify.ts'
import { identity, ruleId } from '../../src/core/ids.ts'
import { WORLD_IPV4 } from '../../src/identity/reserved.ts'
import { mkAdmin } from '../support/nodes/admin.ts'
import { mkEndpoint, mkPolicies, Node, prefixOf } from '../support/nodes/node.ts'

function mkNode(): Node {
  const node = new Node()
  node.setEndpoints([mkEndpoint('shop', ['10.0.0.1'])])
  node.setPolicies(
    mkPolicies(`egress:
  - toCIDR: [198.18.0.0/16]
    toPorts: [{ ports: [{ port: '443', protocol: TCP }, { port: '80', endPort: 81, protocol: UDP }] }]`),
  )
  return node
}

test('datapathRows reads mode, endpoints, sources, policy and prefixes back as texts', () => {
  const node = mkNode()
  const id = node.identityOf('198.18.0.0/16')
  assert.deepEqual(collect(datapathRows(mkAdmin(node).state)), [
    { map: 'ng_mode', key: 'mode', value: 'enforce' },
    { map: 'ng_endpoints', key: 'lxc-shop', value: 'endpoint 1 generation 1 enforcing' },
    { map: 'ng_source', key: 'endpoint 1 10.0.0.1/32', value: 'allowed' },
    ...['443/TCP', '80-81/UDP'].map((ports) => ({
      map: 'ng_policy',
      key: `endpoint 1 identity ${id} ${ports}`,
      value: 'allow rule 2',
    })),
    {
      map: 'ng_ipcache',
      key: '10.0.0.1/32',
      value: `identity ${node.identityOf('10.0.0.1')} class endpoint`,
    },
    { map: 'ng_ipcache', key: '198.18.0.0/16', value: `identity ${id} class world-ipv4` },
  ])
})

test('differenceRows is empty while the datapath has what is wanted', () => {
  assert.deepEqual(collect(differenceRows(mkAdmin(mkNode()).state)), [])
})

test('differenceRows names every missing, changed and additional entry, in every map', () => {
  const node = mkNode()
  const { recorder } = node
  const { state } = mkAdmin(node, { mode: () => 'enforce' })
  const id = node.identityOf('198.18.0.0/16')
  const own = node.identityOf('10.0.0.1')
  recorder.mode.set('bypass')
  recorder.prefixes.delete('10.0.0.1/32')
  const place = { identity: identity(77), addressClass: WORLD_IPV4 }
  recorder.prefixes.set('198.18.0.0/16', { ...place, prefix: prefixOf('198.18.0.0/16') })
  recorder.prefixes.set('9.9.9.9/32', { ...place, prefix: prefixOf('9.9.9.9') })
  const [[key, entry] = []] = [...recorder.policies]
  assert.ok(key !== undefined && entry !== undefined)
  recorder.policies.set(key, { ...entry, verdict: 'deny' })
  recorder.policies.set('stranger', { ...entry, identity: identity(78), rule: ruleId(9) })
  for (const [number, endpoint] of recorder.endpoints) {
    recorder.endpoints.set(number, { ...endpoint, audit: true, sources: [] })
  }
  assert.deepEqual(collect(differenceRows(state)), [
    { map: 'ng_mode', key: 'mode', want: 'enforce', have: 'bypass' },
    {
      map: 'ng_endpoints',
      key: 'lxc-shop',
      want: 'endpoint 1 generation 1 enforcing',
      have: 'endpoint 1 generation 1 enforcing audit',
    },
    { map: 'ng_source', key: 'endpoint 1 10.0.0.1/32', want: 'allowed', have: null },
    {
      map: 'ng_policy',
      key: `endpoint 1 identity ${id} 443/TCP`,
      want: 'allow rule 2',
      have: 'deny rule 2',
    },
    {
      map: 'ng_policy',
      key: 'endpoint 1 identity 78 443/TCP',
      want: null,
      have: 'allow rule 9',
    },
    {
      map: 'ng_ipcache',
      key: '198.18.0.0/16',
      want: `identity ${id} class world-ipv4`,
      have: 'identity 77 class world-ipv4',
    },
    { map: 'ng_ipcache', key: '9.9.9.9/32', want: null, have: 'identity 77 class world-ipv4' },
    { map: 'ng_ipcache', key: '10.0.0.1/32', want: `identity ${own} class endpoint`, have: null },
  ])
})

test('differenceRows does not count changes during its look', () => {
  const node = mkNode()
  const { id } = node.endpoint('shop')
  for (let i = 0; i < 300; i++) node.learn(id, `n${i}.x`, [`198.18.1.${i % 256}`])
  const rows = differenceRows(mkAdmin(node).state)[Symbol.iterator]()
  const taken = node.recorder.prefixes.get('198.18.0.0/16')
  assert.ok(taken !== undefined)
  node.recorder.prefixes.delete('198.18.0.0/16')
  const first = rows.next()
  assert.deepEqual(first, { done: false, value: undefined }, 'it pauses after its first look began')
  node.recorder.prefixes.set('198.18.0.0/16', taken)
  const found = []
  for (let next = rows.next(); next.done !== true; next = rows.next()) {
    if (next.value !== undefined) found.push(next.value)
  }
  assert.deepEqual(found, [])
})

test('differenceRows leaves out endpoints whose hook is missing', () => {
  const node = mkNode()
  node.recorder.hook = { kind: 'waiting', reason: 'no interface' }
  node.recorder.endpoints.clear()
  assert.deepEqual(collect(differenceRows(mkAdmin(node).state)), [])
})

for (const learning of ['node', 'endpoint'] as const) {
  test(`differenceRows counts no entry of the daemon before that stays for state.restore-grace, learning: ${learning}`, () => {
    const mkNames = (recorder?: Node['recorder']): Node => {
      const node = new Node({ learning, recorder })
      const allowed =
        'egress: [ { toFQDNs: [ { matchPattern: "*.x" } ], toPorts: [ { ports: [ { port: "443", protocol: TCP } ] } ] } ]'
      node.policies.setPolicies(mkPolicies(allowed), node.endpoints.registry)
      node.setEndpoints([mkEndpoint('shop', ['10.0.0.1'])])
      return node
    }
    const old = mkNames()
    old.learn(old.endpoint('shop').id, 'www.x', ['198.18.0.1', '198.18.0.2'])
    const next = mkNames(old.recorder)
    const { state } = mkAdmin(next)
    assert.deepEqual(collect(differenceRows(state)), [], 'before the restart')
    next.takeOver('grace')
    assert.equal(next.restart.progress.kept, 2)
    assert.deepEqual(collect(differenceRows(state)), [], 'in the grace')

    const [[key, entry] = []] = [...next.recorder.policies]
    assert.ok(key !== undefined && entry !== undefined)
    next.recorder.policies.set(key, { ...entry, verdict: 'deny' })
    const [[place, kept] = []] = [...next.recorder.prefixes].filter(([at]) => at.startsWith('198.'))
    assert.ok(place !== undefined && kept !== undefined)
    next.recorder.prefixes.set(place, { ...kept, identity: identity(77) })
    assert.deepEqual(
      collect(differenceRows(state)).map(({ map, want }) => [map, want]),
      [
        ['ng_policy', null],
        ['ng_ipcache', null],
      ],
      'what another program changed',
    )
    next.takeOver('done')
    assert.deepEqual(collect(differenceRows(state)), [], 'after the grace')
  })
}
