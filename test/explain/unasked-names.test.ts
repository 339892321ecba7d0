// The remedy for a name that a rule has under toFQDNs and that no rule lets the endpoint ask, and the reason for a refused server.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ask, connect, explainOn } from '../support/nodes/explain.ts'
import { mkPolicyNode } from '../support/nodes/policy-node.ts'

test('explain has the remedy for a name that no rule lets the endpoint ask', () => {
  const node = mkPolicyNode([
    `egress: [ { toFQDNs: [ { matchName: cilium.io } ] }, { toPorts: [ { ports: [ { port: "53", protocol: ANY } ], rules: { dns: [ { matchName: ebpf.io } ] } } ] } ]`,
  ])
  const remedy =
    'policy-0 policy-0.yaml:6 has cilium.io under toFQDNs, but no rule lets it be asked: add a rule with toPorts 53, protocol ANY, and cilium.io under rules.dns'
  const asked = explainOn(node, ask('cilium.io'))
  assert.deepEqual([asked.verdict, asked.notes], ['deny', [remedy]])
  const connected = explainOn(node, connect({ name: 'cilium.io' }))
  assert.equal(connected.notes.at(-1), remedy, 'a connection that is allowed and never happens')
  assert.deepEqual(explainOn(node, ask('other.io')).notes, [], 'a name of no rule')
})

test('explain names the question that a refused server refuses', () => {
  const deny = mkPolicyNode([
    'egressDeny: [ { toEntities: [ all ], toPorts: [ { ports: [ { port: "53", protocol: ANY } ] } ] } ]',
  ])
  const denied = explainOn(deny, ask('a.example', '203.0.113.53'))
  assert.equal(denied.reason, 'a.example may not be asked: a rule denies the server')
  const none = mkPolicyNode(['egress: [ { toCIDR: [ 192.0.2.0/28 ] } ]'])
  const refused = explainOn(none, ask('a.example', '203.0.113.53'))
  assert.equal(
    refused.reason,
    'a.example may not be asked: no rule admits the server at that port over UDP',
  )
})
