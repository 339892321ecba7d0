// Live, grace, connected, gone (docs/spec/semantics 5), on a clock that only the test moves.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointId } from '../../../src/core/ids.ts'
import { mkEndpoint, mkPolicies, Node, prefixOf } from '../../support/nodes/node.ts'

const TTL = 30
const GRACE = 10

function mkNode(pairs = 4096): Node {
  const node = new Node({ graceSeconds: GRACE, pairs })
  node.setEndpoints([mkEndpoint('a', ['10.0.0.1']), mkEndpoint('b', ['10.0.0.2'])])
  node.setPolicies(mkPolicies('egress: [ { toFQDNs: [ { matchPattern: "*" } ] } ]'))
  return node
}

function idOf(node: Node, name: string): EndpointId {
  return node.endpoint(name).id
}

function stateOf(node: Node, name: string, address: string): string {
  const { mappings, entries } = node.core.names
  const row = node.rowOf(address)
  if (row === 0) return 'gone'
  const entry = entries.find(mappings.firstOfPrefix[row] ?? 0, idOf(node, name))
  return entry === 0 ? 'gone' : node.core.names.stateOf(entry)
}

function wait(node: Node, seconds: number): void {
  node.clock.advance(seconds * 1000)
  while (!node.core.expiry.step(1)) node.clock.advance(0)
  node.core.committer.commit()
}

test('Expiry keeps an entry live until the end of its TTL, then in grace, then removes it', () => {
  const node = mkNode()
  node.learn(idOf(node, 'a'), 'x.y', ['192.0.2.1'], TTL)
  const states: string[] = []
  for (const seconds of [TTL - 1, 1, 1, GRACE - 1, 1]) {
    wait(node, seconds)
    states.push(stateOf(node, 'a', '192.0.2.1'))
  }
  assert.deepEqual(states, ['live', 'live', 'grace', 'grace', 'gone'])
  assert.deepEqual([node.rowOf('192.0.2.1'), node.core.expiry.forgotten], [0, 1])
  assert.deepEqual(node.differences(), [])
})

test('Expiry keeps entries that a connection of the same endpoint uses, and no others', () => {
  const node = mkNode()
  node.learn(idOf(node, 'a'), 'x.y', ['192.0.2.1', '192.0.2.2', '2001:db8::1'], TTL)
  node.learn(idOf(node, 'b'), 'x.y', ['192.0.2.1'], TTL)
  const { connections } = node.recorder
  connections.push({ endpoint: idOf(node, 'a'), peer: prefixOf('192.0.2.1') })
  connections.push({ endpoint: idOf(node, 'a'), peer: prefixOf('2001:db8::1') })
  connections.push({ endpoint: idOf(node, 'b'), peer: prefixOf('192.0.2.2') })
  wait(node, TTL + GRACE + 1)
  const rows = [
    ['a', '192.0.2.1', 'connected', 'open connection'],
    ['a', '2001:db8::1', 'connected', 'IPv6'],
    ['a', '192.0.2.2', 'gone', "another endpoint's connection"],
    ['b', '192.0.2.1', 'gone', "another endpoint's connection"],
  ] as const
  for (const [name, address, state, reason] of rows) {
    assert.equal(stateOf(node, name, address), state, reason)
  }
  assert.equal(node.core.expiry.kept, 2)
  connections.length = 0
  wait(node, 4)
  assert.equal(stateOf(node, 'a', '192.0.2.1'), 'connected', 'read again after 5 s')
  wait(node, 1)
  assert.equal(stateOf(node, 'a', '192.0.2.1'), 'gone')
  assert.deepEqual(node.differences(), [])
})

test('Expiry reports connections to an address when the TTL of its name is over, and no others', () => {
  const node = mkNode()
  const a = idOf(node, 'a')
  const told: string[] = []
  const { expiry, names } = node.core
  expiry.onExpiredUse = (entry) => {
    told.push(names.names.format(names.mappings.name[names.entries.mapping[entry] ?? 0] ?? 0))
  }
  const open = (address: string): void => {
    node.recorder.connections.push({ endpoint: a, peer: prefixOf(address) })
  }
  node.learn(a, 'other.y', ['192.0.2.9'], 0)
  open('192.0.2.9')
  wait(node, GRACE + 1)
  assert.deepEqual(told, [], 'it can have begun in time: there was no look before')
  node.learn(a, 'in-time.y', ['192.0.2.1'], TTL)
  node.learn(a, 'late.y', ['192.0.2.2'], TTL)
  open('192.0.2.1')
  for (let s = 0; s < TTL; s += 5) wait(node, 5)
  wait(node, 6)
  open('192.0.2.2')
  wait(node, 5)
  assert.deepEqual(told, ['late.y'])
  assert.equal(expiry.expiredUses, 1)
})

test('Expiry removes entries without a connection in time, however small limits.pairs is', () => {
  const node = mkNode(2)
  const [a, b] = [idOf(node, 'a'), idOf(node, 'b')]
  node.learn(a, 'x.y', ['192.0.2.1', '192.0.2.2'], TTL)
  const connections = ([a, b] as const).flatMap((endpoint) =>
    ['192.0.2.1', '192.0.2.2'].map((peer) => ({ endpoint, peer: prefixOf(peer) })),
  )
  // All but the last connection. Endpoint b, which has no names, has two connections to addresses of a.
  node.recorder.connections.push(...connections.slice(2), ...connections.slice(0, 1))
  wait(node, TTL + GRACE + 1)
  assert.equal(stateOf(node, 'a', '192.0.2.1'), 'connected')
  assert.equal(stateOf(node, 'a', '192.0.2.2'), 'gone', 'three connections, two entries')
})

test('Expiry lets the answer win: an entry that is renewed at any moment of a pass stays', () => {
  for (let moment = 0; moment < 12; moment++) {
    const node = mkNode()
    node.learn(idOf(node, 'a'), 'x.y', ['192.0.2.1', '192.0.2.2'], TTL)
    node.clock.advance((TTL + GRACE + 1) * 1000)
    // A budget of zero: one small piece of work for each step.
    for (let i = 0; i < moment; i++) node.core.expiry.step(0)
    node.learn(idOf(node, 'a'), 'x.y', ['192.0.2.1'], TTL)
    for (let i = 0; i < 20; i++) node.core.expiry.step(0)
    node.core.committer.commit()
    assert.equal(stateOf(node, 'a', '192.0.2.1'), 'live', `renewed at moment ${moment}`)
    assert.equal(stateOf(node, 'a', '192.0.2.2'), 'gone', `at moment ${moment}`)
    assert.deepEqual(node.differences(), [])
  }
})

test('Expiry keeps an address that another name or endpoint has', () => {
  const node = mkNode()
  node.learn(idOf(node, 'a'), 'x.y', ['192.0.2.1'], TTL)
  node.learn(idOf(node, 'b'), 'x.y', ['192.0.2.1'], TTL * 10)
  node.learn(idOf(node, 'a'), 'z.y', ['192.0.2.1'], TTL)
  wait(node, TTL + GRACE + 1)
  assert.equal(node.core.expiry.forgotten, 2)
  assert.ok(node.labelsOf('192.0.2.1').includes('fqdn:*'))
  assert.equal(node.verdict('a', '192.0.2.1'), 'allow', "the fact is the node's")
})

test('Expiry works in bounded steps and returns to the event loop between them', () => {
  const node = new Node({ graceSeconds: GRACE, pairs: 3000 })
  node.setEndpoints([mkEndpoint('a', ['10.0.0.1'])])
  const addresses = Array.from({ length: 2000 }, (_, i) => `198.18.${i >> 8}.${i & 255}`)
  node.learn(idOf(node, 'a'), 'x.y', addresses, TTL)
  node.clock.advance((TTL + GRACE + 1) * 1000)
  let steps = 0
  let most = 0
  for (let before = 0; node.core.names.entries.slots.used > 0; steps++) {
    node.core.expiry.step(0)
    most = Math.max(most, node.core.expiry.forgotten - before)
    before = node.core.expiry.forgotten
    assert.ok(steps < 1000)
  }
  assert.ok(most <= 32, `at most 32 entries a step, found ${most}`)
  assert.ok(steps >= 2000 / 32)
})
