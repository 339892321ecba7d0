import assert from 'node:assert/strict'
import { test } from 'node:test'
import { packetFlowOf } from '../../src/control/packet-flow.ts'
import type { DatapathEvent } from '../../src/datapath/datapath.ts'
import { endpointId, identity, ruleId } from '../../src/core/ids.ts'
import { mkEndpoint, mkPolicies, Node, prefixOf } from '../support/node.ts'

const PEER = '198.18.0.9'

function mkLab() {
  const node = new Node()
  node.setEndpoints([mkEndpoint('shop', ['10.0.0.1'])])
  node.setPolicies(
    mkPolicies(
      'egress: [{ toFQDNs: [{ matchPattern: "*.x" }] }]',
      'enableDefaultDeny: { egress: false }\negressDeny: [{ toCIDR: [198.18.0.0/16] }]',
    ),
  )
  return node
}

function eventOf(node: Node, given: Partial<DatapathEvent> = {}): DatapathEvent {
  return {
    verdict: 'deny',
    reason: 'policy',
    endpoint: node.endpoint('shop').id,
    family: 4,
    peer: prefixOf(PEER).octets,
    protocol: 6,
    port: 443,
    identity: identity(9),
    rule: ruleId(0),
    ...given,
  }
}

test('packetFlowOf names the peer as it is known when the packet was sent, four names at most', () => {
  const node = mkLab()
  const event = eventOf(node)
  assert.deepEqual(packetFlowOf(node, event).names, [])
  const shop = node.endpoint('shop').id
  for (const name of ['a.x', 'b.x', 'c.y', 'd.y', 'e.y']) node.learn(shop, name, [PEER])
  const { names } = packetFlowOf(node, event)
  assert.equal(names.length, 4)
  for (const name of names) assert.match(name, /^[a-e]\.[xy]$/)
  assert.deepEqual(packetFlowOf(node, eventOf(node, { reason: 'malformed' })).names, [])
})

test('packetFlowOf names what the endpoint itself asked before what others did', () => {
  const node = mkLab()
  node.setEndpoints([mkEndpoint('shop', ['10.0.0.1']), mkEndpoint('other', ['10.0.0.2'])])
  const [shop, other] = [node.endpoint('shop').id, node.endpoint('other').id]
  node.learn(shop, 'first.x', [PEER])
  for (let i = 0; i < 20; i++) node.learn(other, `n${i}.y`, [PEER])
  node.learn(shop, 'n7.y', [PEER])
  for (let i = 20; i < 40; i++) node.learn(other, `n${i}.y`, [PEER])
  const { names } = packetFlowOf(node, eventOf(node))
  assert.deepEqual(names.slice(0, 2).toSorted(), ['first.x', 'n7.y'])
  assert.equal(names.length, 4)
})

test('packetFlowOf names the rule that denied, else the policies that turn default deny on', () => {
  const node = mkLab()
  const { origins } = node.core
  const places = (given: Partial<DatapathEvent>) =>
    origins.places(packetFlowOf(node, eventOf(node, given)).rule)
  const [entry] = [...node.recorder.policies.values()].filter(({ verdict }) => verdict === 'deny')
  assert.ok(entry !== undefined)
  const denying = { policy: 'policy-1', file: 'policy-1.yaml', line: 7 }
  const byDefault = { policy: 'policy-0', file: 'policy-0.yaml', line: 5 }
  const rows = [
    [{ rule: entry.rule }, [denying], 'a deny rule, and not who else turns default deny on'],
    [{}, [byDefault], 'no rule: the policy that turns default deny on'],
    [{ verdict: 'audit' }, [byDefault], 'the same in audit'],
    [{ reason: 'fragment' }, [byDefault], 'a fragment is judged by policy too'],
    [{ reason: 'source' }, [], 'no policy speaks of a forged source'],
    [{ endpoint: endpointId(77) }, [], 'an endpoint that is gone has no policies'],
  ] as const
  for (const [given, expected, why] of rows) assert.deepEqual(places(given), expected, why)
})

test('packetFlowOf names nobody where a default and no policy denies', () => {
  const node = new Node({ defaultEgress: 'deny' })
  node.setEndpoints([mkEndpoint('shop', ['10.0.0.1'])])
  node.setPolicies([])
  assert.equal(packetFlowOf(node, eventOf(node)).rule, 0)
})
