// The lines that the page offers are read by the policy loader, and allow what was refused.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { explainBody } from '../../../src/admin/explain.ts'
import type { DnsFlowShape, PacketFlowShape } from '../../../src/admin/document/flow-shapes.ts'
import { linesForName, linesForPacket } from '../../../src/admin/page/allow-lines.ts'
import { loadPolicies } from '../../../src/policy/load/load.ts'
import type { Policy } from '../../../src/policy/rule.ts'
import { mkAdmin } from '../../support/nodes/admin.ts'
import { mkPolicies, type Node } from '../../support/nodes/node.ts'
import { DROP_SHAPE } from '../../support/nodes/packet-shape.ts'
import { mkPolicyNode } from '../../support/nodes/policy-node.ts'

const BASE = 'egress: [ { toCIDR: [ 192.0.2.0/28 ] } ]'
const POLICY_RULE = { policy: 'policy-0', file: 'policy-0.yaml', line: 6 }
const LIST_RULE = { policy: 'web', file: 'web.allow' }
const common = { number: 1, time: '', verdict: 'deny', endpoint: 'a', endpointLabels: [] } as const

const DNS: DnsFlowShape = {
  ...common,
  kind: 'denied',
  client: '10.200.0.1',
  name: 'www.shop.test',
  type: 'A',
  rcode: null,
  outcome: null,
  addresses: 0,
  reason: null,
  rules: [POLICY_RULE],
}

const PACKET: PacketFlowShape = { ...DROP_SHAPE, rules: [POLICY_RULE] }

const PROTOCOLS: Readonly<Record<string, number>> = { TCP: 6, UDP: 17, SCTP: 132 }

/** The policies of a node after the lines were added to them. */
function withLines(lines: { readonly form: string; readonly text: string }): readonly Policy[] {
  const base = mkPolicies(BASE)
  if (lines.form === 'policy') return [...base, ...mkPolicies(`egress:\n${lines.text}`)]
  const { policies, faults } = loadPolicies(`${lines.text}\n`, 'web.allow')
  assert.deepEqual(faults, [])
  return [...base, ...policies]
}

function explained(node: Node, question: object): unknown {
  const answer = explainBody(mkAdmin(node).state, { endpoint: 'a', ...question })
  assert.ok(answer.kind === 'ok')
  return answer.value.verdict
}

test('linesForName makes lines that allow the name, in a policy and in an allow-list', () => {
  for (const rules of [[POLICY_RULE], [LIST_RULE], []]) {
    const lines = linesForName({ ...DNS, rules })
    assert.ok(lines !== undefined)
    const isList = rules[0] === LIST_RULE
    assert.equal(lines.form, isList ? 'allow-list' : 'policy')
    assert.equal(lines.file, isList ? LIST_RULE.file : null)
    const node = mkPolicyNode([BASE])
    node.setPolicies(withLines(lines))
    node.learn(node.endpoint('a').id, 'www.shop.test', ['203.0.113.9'])
    assert.equal(explained(node, { ask: 'www.shop.test' }), 'allow', lines.text)
    assert.equal(node.verdict('a', '203.0.113.9', 443, 6), 'allow', lines.text)
  }
})

test('linesForPacket makes lines that allow the packet', () => {
  const rows: readonly (readonly [given: Partial<PacketFlowShape>, reason: string])[] = [
    [{}, 'an address without a name'],
    [{ names: ['www.shop.test'] }, 'an address with a name'],
    [{ rules: [LIST_RULE] }, 'an address, for an allow-list'],
    [{ rules: [LIST_RULE], names: ['www.shop.test'] }, 'a name, for an allow-list'],
    [{ protocol: 'UDP', port: 443 }, 'UDP'],
    [{ protocol: 'SCTP', port: 443, rules: [LIST_RULE] }, 'SCTP, which a list cannot have'],
    [{ peer: '2001:db8::77', labels: ['world-ipv6'] }, 'IPv6'],
    [{ peer: '2001:db8::77', labels: ['world-ipv6'], rules: [LIST_RULE] }, 'IPv6 in an allow-list'],
    [{ peer: '192.0.2.9', labels: ['host'] }, 'the node itself'],
    [{ peer: '10.200.0.2', labels: ['k8s:app=b'], rules: [LIST_RULE] }, 'another endpoint'],
  ]
  for (const [given, reason] of rows) {
    const flow = { ...PACKET, ...given }
    const lines = linesForPacket(flow)
    assert.ok(lines !== undefined, reason)
    const node = mkPolicyNode(['egress: [ { toCIDR: [ 198.51.100.0/28 ] } ]'])
    node.setPolicies(withLines(lines))
    for (const name of flow.names) node.learn(node.endpoint('a').id, name, [flow.peer])
    const protocol = PROTOCOLS[flow.protocol]
    assert.equal(
      node.verdict('a', flow.peer, flow.port, protocol),
      'allow',
      `${reason}: ${lines.text}`,
    )
    assert.equal(node.verdict('a', '203.0.113.77', flow.port, protocol), 'deny', reason)
  }
})

test('linesForName and linesForPacket make no line where none would help', () => {
  const names: readonly (readonly [Partial<DnsFlowShape>, string])[] = [
    [{ reason: 'server' }, 'the server was refused, not the name'],
    [{ name: null }, 'the name is not known any more'],
    [{ name: 'a"b.test' }, 'a name that a policy cannot have as it is'],
    [{ name: '198.51.100.7', rules: [LIST_RULE] }, 'an address that was asked as a name'],
  ]
  for (const [given, reason] of names)
    assert.equal(linesForName({ ...DNS, ...given }), undefined, reason)
  const packets: readonly (readonly [Partial<PacketFlowShape>, string])[] = [
    [{ deniedBy: 'rule' }, 'a deny rule'],
    [{ deniedBy: null, reason: 'spoofed source' }, 'not by policy'],
    [{ protocol: 'UDP', port: 53 }, 'a DNS server: a way around names'],
    [{ port: 53, rules: [LIST_RULE] }, 'a DNS server over TCP, for a list'],
  ]
  for (const [given, reason] of packets) {
    assert.equal(linesForPacket({ ...PACKET, ...given }), undefined, reason)
  }
})
