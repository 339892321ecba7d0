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

test('Departures.step forgets no more than it is told, and costs nothing for what others learned', () => {
  const node = mkNode()
  const { departures, names } = node.core
  node.learn(node.endpoint('a').id, 'n.x', addresses(10))
  node.learn(node.endpoint('b').id, 'n.x', addresses(3_000))
  assert.deepEqual([departures.pending, departures.step(1)], [false, true])
  departures.add(node.endpoint('a').id)
  assert.equal(departures.step(9), false)
  assert.deepEqual([departures.pending, names.pairs.slots.used], [true, 3_001])
  assert.equal(departures.step(2), true, 'the tenth, and then there is none')
  assert.deepEqual([departures.pending, names.pairs.slots.used], [false, 3_000])
})

test('Departures.step passes over endpoints that learned nothing', () => {
  const node = mkNode()
  const { departures, names } = node.core
  node.learn(node.endpoint('b').id, 'n.x', addresses(2))
  for (const name of ['a', 'b', 'c']) departures.add(node.endpoint(name).id)
  assert.equal(departures.step(3), true)
  assert.equal(names.pairs.slots.used, 0)
})
