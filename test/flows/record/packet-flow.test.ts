import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FlowBegins, packetFlowOf } from '../../../src/flows/record/packet-flow.ts'
import type { DatapathEvent } from '../../../src/datapath/entries.ts'
import { endpointId, identity, ruleId } from '../../../src/core/ids.ts'
import { mkEndpoint, mkPolicies, Node, prefixOf } from '../../support/nodes/node.ts'

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
    seen: node.clock.now(),
    age: 0,
    verdict: 'deny',
    reason: 'policy',
    endpoint: node.endpoint('shop').id,
    family: 4,
    peer: prefixOf(PEER).octets,
    protocol: 6,
    port: 443,
    localPort: 40_000,
    opening: true,
    identity: identity(9),
    rule: ruleId(0),
    ...given,
  }
}

test('packetFlowOf names the peer as known when the packet was sent, with at most four names', () => {
  const node = mkLab()
  const event = eventOf(node)
  assert.deepEqual(flowOf(node, event).names, [])
  const shop = node.endpoint('shop').id
  for (const name of ['a.x', 'b.x', 'c.y', 'd.y', 'e.y']) node.learn(shop, name, [PEER])
  const { names } = flowOf(node, event)
  assert.equal(names.length, 4)
  for (const name of names) assert.match(name, /^[a-e]\.[xy]$/)
  assert.deepEqual(flowOf(node, eventOf(node, { reason: 'malformed' })).names, [])
})

/** The record, with flows that have just begun. */
function flowOf(node: Node, event: DatapathEvent, flowBegins = new FlowBegins()) {
  const { core, policies } = node
  return packetFlowOf({ core, policies, flowBegins }, event)
}

test('packetFlowOf uses names that the endpoint asked, and names of others only if it asked none', () => {
  const node = mkLab()
  node.setEndpoints([mkEndpoint('shop', ['10.0.0.1']), mkEndpoint('other', ['10.0.0.2'])])
  const [shop, other] = [node.endpoint('shop').id, node.endpoint('other').id]
  for (let i = 0; i < 20; i++) node.learn(other, `n${i}.y`, [PEER])
  assert.equal(flowOf(node, eventOf(node)).names.length, 4)
  node.learn(shop, 'first.x', [PEER])
  node.learn(shop, 'n7.y', [PEER])
  for (let i = 20; i < 40; i++) node.learn(other, `n${i}.y`, [PEER])
  assert.deepEqual(flowOf(node, eventOf(node)).names.toSorted(), ['first.x', 'n7.y'])
})

test('packetFlowOf uses the names known when the flow began', () => {
  const node = mkLab()
  node.setEndpoints([mkEndpoint('shop', ['10.0.0.1']), mkEndpoint('other', ['10.0.0.2'])])
  const [shop, other] = [node.endpoint('shop').id, node.endpoint('other').id]
  const flowBegins = new FlowBegins()
  const namesOf = (given: Partial<DatapathEvent>) =>
    flowOf(node, eventOf(node, given), flowBegins).names
  const bare = eventOf(node)
  node.clock.advance(1)
  node.learn(shop, 'a.x', [PEER])
  const first = eventOf(node)
  node.clock.advance(1)
  node.learn(shop, 'b.x', [PEER])
  node.learn(other, 'c.x', [PEER])
  node.learn(other, 'd.x', [PEER])
  node.clock.advance(100)
  node.learn(shop, 'd.x', [PEER])
  const later = { seen: node.clock.now(), opening: false }
  const both = ['a.x', 'b.x', 'd.x']
  const idle = { seen: node.clock.now() + 180_000, opening: false }
  const rows = [
    [bare, [], 'no name was known'],
    [first, ['a.x'], 'the name that was resolved right after it'],
    [later, ['a.x'], 'the flow continues'],
    [{ ...later, localPort: 40_001 }, both, 'another flow'],
    [{ ...later, localPort: 0 }, both, 'a protocol without ports has no flows'],
    [{ ...later, protocol: 17 }, both, 'another protocol'],
    [{ ...later, endpoint: other }, ['c.x', 'd.x'], 'another endpoint has its own names'],
    [{ ...later, opening: true }, both, 'the port is used again'],
    [idle, both, 'the flow was silent for too long'],
  ] as const
  for (const [given, expected, why] of rows)
    assert.deepEqual(namesOf(given).toSorted(), expected, why)
  const onlyOthers = flowOf(node, eventOf(node, { ...bare, endpoint: other }))
  assert.deepEqual(onlyOthers.names, [], 'a name that was not asked by then')
})

test('FlowBegins drops the flow that began first, and never returns a time after the packet', () => {
  const node = mkLab()
  const flows = new FlowBegins()
  const packet = (localPort: number, seen: number) =>
    eventOf(node, { localPort, seen, opening: false })
  for (let port = 1; port <= 8193; port++) assert.equal(flows.of(packet(port, port)), port)
  assert.equal(flows.of(packet(8193, 9000)), 8193)
  assert.equal(flows.of(packet(2, 9000)), 2)
  assert.equal(flows.of(packet(1, 9000)), 9000, 'forgotten')
  assert.equal(flows.of(packet(8193, 5000)), 5000, 'packets of two CPUs are read in any order')
})

test('packetFlowOf names the rule that denied, else the policies that turn default deny on', () => {
  const node = mkLab()
  const { origins } = node.core
  const places = (given: Partial<DatapathEvent>) =>
    origins.places(flowOf(node, eventOf(node, given)).rule)
  const [entry] = [...node.recorder.policies.values()].filter(({ verdict }) => verdict === 'deny')
  assert.ok(entry !== undefined)
  const denying = { policy: 'policy-1', file: 'policy-1.yaml', line: 7 }
  const byDefault = { policy: 'policy-0', file: 'policy-0.yaml', line: 5 }
  const rows = [
    [{ rule: entry.rule }, [denying], 'a deny rule, without policies of default deny'],
    [{}, [byDefault], 'no rule: the policy that turns default deny on'],
    [{ verdict: 'audit' }, [byDefault], 'the same in audit'],
    [{ reason: 'fragment' }, [byDefault], 'a fragment is judged by policy too'],
    [{ reason: 'source' }, [], 'no policy decides about a forged source'],
    [{ endpoint: endpointId(77) }, [], 'a removed endpoint has no policies'],
  ] as const
  for (const [given, expected, why] of rows) assert.deepEqual(places(given), expected, why)
})

test('packetFlowOf names no policy if a default denies', () => {
  const node = new Node({ defaultEgress: 'deny' })
  node.setEndpoints([mkEndpoint('shop', ['10.0.0.1'])])
  node.setPolicies([])
  assert.equal(flowOf(node, eventOf(node)).rule, 0)
})
