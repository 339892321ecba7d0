import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addressNumber, mkEndpoint, Node } from '../../support/nodes/node.ts'

function mkNode(): Node {
  const node = new Node({ pairs: 16_384 })
  node.setEndpoints(['a', 'b', 'c'].map((name, i) => mkEndpoint(name, [`10.0.0.${i + 1}`])))
  return node
}

function addresses(count: number): readonly string[] {
  return Array.from({ length: count }, (_, i) => addressNumber(4, i))
}

test('EndpointRemoval.step removes at most its budget, and costs nothing for entries of others', () => {
  const node = mkNode()
  const { endpointRemoval, names } = node.core
  node.learn(node.endpoint('a').id, 'n.x', addresses(10))
  node.learn(node.endpoint('b').id, 'n.x', addresses(3_000))
  assert.deepEqual([endpointRemoval.pending, endpointRemoval.step(1)], [false, true])
  endpointRemoval.add(node.endpoint('a').id)
  assert.equal(endpointRemoval.step(9), false)
  assert.deepEqual([endpointRemoval.pending, names.entries.slots.used], [true, 3_001])
  assert.equal(endpointRemoval.step(2), true, 'the tenth, which was the last')
  assert.deepEqual([endpointRemoval.pending, names.entries.slots.used], [false, 3_000])
})

test('EndpointRemoval.step skips endpoints that learned nothing', () => {
  const node = mkNode()
  const { endpointRemoval, names } = node.core
  node.learn(node.endpoint('b').id, 'n.x', addresses(2))
  for (const name of ['a', 'b', 'c']) endpointRemoval.add(node.endpoint(name).id)
  assert.equal(endpointRemoval.step(3), true)
  assert.equal(names.entries.slots.used, 0)
})
