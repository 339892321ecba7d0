// Scoped entries in every view: their row names the endpoint, their key its number.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { datapathRows } from '../../src/admin/views/datapath.ts'
import { ipcacheRows } from '../../src/admin/views/ipcache.ts'
import { nameRows } from '../../src/admin/views/names.ts'
import { collect } from '../../src/admin/views/rows.ts'
import { selectorRows } from '../../src/admin/views/selectors.ts'
import { differenceRows } from '../../src/admin/views/verify.ts'
import { identity } from '../../src/core/ids.ts'
import { WORLD_IPV4 } from '../../src/identity/reserved.ts'
import { mkAdmin } from '../support/nodes/admin.ts'
import { mkEndpoint, mkPolicies, Node, prefixOf } from '../support/nodes/node.ts'

const WORLD = ['reserved:world', 'reserved:world-ipv4']

/** `shop` has a policy, `free` has none and is under allow-named. */
function mkNode(): Node {
  const node = new Node({ learning: 'endpoint', defaultEgress: 'allow-named' })
  const records = [
    mkEndpoint('shop', ['10.0.0.1'], ['k8s:app=shop']),
    mkEndpoint('free', ['10.0.0.2']),
  ]
  node.setEndpoints(records)
  node.setPolicies(
    mkPolicies(
      'endpointSelector: { matchLabels: { app: shop } }\negress: [ { toFQDNs: [ { matchPattern: "*.x" } ] } ]',
    ),
  )
  for (const name of ['shop', 'free']) node.learn(node.endpoint(name).id, 'a.x', ['198.18.0.1'])
  return node
}

test('ipcacheRows has a row for each endpoint’s view of an address, with the endpoint', () => {
  const node = mkNode()
  const [shop, free] = ['shop', 'free'].map((name) => node.endpoint(name).id)
  const rows = collect(ipcacheRows(mkAdmin(node).state))
  const learned = rows.filter(({ prefix }) => prefix === '198.18.0.1/32')
  const owners = (...labels: string[]) => [{ kind: 'name', name: 'a.x', labels }]
  assert.deepEqual(learned, [
    {
      prefix: '198.18.0.1/32',
      identity: node.identityOf('198.18.0.1', shop),
      labels: ['fqdn:*.x', ...WORLD],
      owners: owners('fqdn:*.x'),
      endpoint: 'shop',
    },
    {
      prefix: '198.18.0.1/32',
      identity: node.identityOf('198.18.0.1', free),
      labels: ['fqdn:*.x', 'reserved:named', ...WORLD],
      owners: owners('fqdn:*.x', 'reserved:named'),
      endpoint: 'free',
    },
  ])
  const others = rows.filter(({ prefix }) => prefix !== '198.18.0.1/32')
  assert.ok(
    others.length > 0 && others.every((row) => !('endpoint' in row)),
    'the node’s have none',
  )
})

test('nameRows shows each endpoint its own entries, as without scopes', () => {
  const rows = collect(nameRows(mkAdmin(mkNode()).state))
  const short = rows.map(({ name, endpoint, addresses }) => [name, endpoint, addresses.length])
  assert.deepEqual(
    new Set(short.map(String)),
    new Set(
      [
        ['a.x', 'shop', 1],
        ['a.x', 'free', 1],
      ].map(String),
    ),
  )
})

test('selectorRows shows what allow-named selects', () => {
  const node = mkNode()
  const named = collect(selectorRows(mkAdmin(node).state)).find(({ kind }) => kind === 'named')
  assert.equal(named?.selector, 'reserved:named')
  assert.ok(named.identities.includes(node.identityOf('198.18.0.1', node.endpoint('free').id)))
  assert.deepEqual([named.names, named.policies], [0, []])
})

test('datapathRows and differenceRows name the endpoint of a scoped entry', () => {
  const node = mkNode()
  const { state } = mkAdmin(node, { mode: () => 'enforce' })
  const [shop, free] = ['shop', 'free'].map((name) => node.endpoint(name).id)
  const keys = collect(datapathRows(state)).map(({ map, key, value }) => `${map} ${key}: ${value}`)
  const own = `ng_ipcache endpoint ${shop} 198.18.0.1/32: identity ${node.identityOf('198.18.0.1', shop)} class world-ipv4`
  assert.ok(keys.includes(own), keys.join('\n'))
  assert.ok(
    keys.includes(`ng_endpoints lxc-free: endpoint ${free} generation ${free} enforcing scoped`),
  )
  assert.deepEqual(collect(differenceRows(state)), [])
  node.recorder.prefixes.delete(`198.18.0.1/32@${shop}`)
  const place = { identity: identity(77), addressClass: WORLD_IPV4, prefix: prefixOf('9.9.9.9') }
  node.recorder.prefixes.set(`9.9.9.9/32@${free}`, { ...place, scope: free ?? 0 })
  const want = `identity ${node.identityOf('198.18.0.1', shop)} class world-ipv4`
  assert.deepEqual(collect(differenceRows(state)), [
    {
      map: 'ng_ipcache',
      key: `endpoint ${free} 9.9.9.9/32`,
      want: null,
      have: 'identity 77 class world-ipv4',
    },
    { map: 'ng_ipcache', key: `endpoint ${shop} 198.18.0.1/32`, want, have: null },
  ])
})
