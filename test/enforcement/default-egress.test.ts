// An endpoint gets a default egress and leaves it. On every single write between, what is allowed before and after passes, and what is
// denied before and after does not.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointRecord } from '../../src/enforcement/endpoint-control.ts'
import { DEFAULT_EGRESS, type DefaultEgress } from '../../src/policy/compile/default-egress.ts'
import { mkEndpoint, mkPolicies, Node } from '../support/nodes/node.ts'
import { validateCore } from '../support/models/validate-core.ts'

const LEARNED = '192.0.2.1'
const BARE = '192.0.2.99'
const PEER = '10.0.0.2'
const DENIED = '198.51.100.1'
const ADDRESSES = [LEARNED, BARE, PEER, DENIED]
const DENY = 'enableDefaultDeny: { egress: false }\negressDeny: [ { toCIDR: [ 198.51.100.0/24 ] } ]'
const STRICT =
  'endpointSelector: { matchLabels: { app: a } }\negress: [ { toFQDNs: [ { matchPattern: "*.x" } ] } ]'

/** What each default allows: a learned address, a bare one, another endpoint, a learned but denied one. */
const ALLOWED: Readonly<Record<DefaultEgress, readonly boolean[]>> = {
  allow: [true, true, true, false],
  'allow-named': [true, false, false, false],
  'allow-known': [false, false, true, false],
  audit: [true, true, true, false],
  deny: [false, false, false, false],
}

function records(egress: DefaultEgress | undefined): readonly EndpointRecord[] {
  const label = egress === undefined ? [] : [`external:namegate.io/default-egress=${egress}`]
  return [mkEndpoint('a', ['10.0.0.1'], ['k8s:app=a', ...label]), mkEndpoint('b', [PEER])]
}

function mkNode(egress: DefaultEgress, learning: 'node' | 'endpoint', ...more: string[]): Node {
  const node = new Node({ learning, rowsPerLook: 2 })
  node.setEndpoints(records(egress))
  node.setPolicies(mkPolicies(DENY, ...more))
  const { id } = node.endpoint('a')
  for (let i = 0; i < 20; i++) node.learn(id, `n${i}.x`, [`192.0.3.${i}`])
  node.learn(id, 'n.x', [LEARNED, DENIED])
  return node
}

function setPolicies(node: Node, ...specs: readonly string[]): void {
  node.policies.setPolicies(mkPolicies(...specs), node.endpoints.registry)
}

function passes(node: Node): readonly boolean[] {
  return ADDRESSES.map((each) => node.verdict('a', each) !== 'deny')
}

/** Finishes a change in the smallest slices, each with a commit. */
function carry(node: Node): void {
  node.transition.begin()
  while (!node.transition.step(0));
}

/** Runs a change and checks every write of it. */
function watch(node: Node, change: () => void): void {
  const before = passes(node)
  const seen: (readonly boolean[])[] = []
  node.recorder.onWrite = () => seen.push(passes(node))
  change()
  carry(node)
  node.recorder.onWrite = () => undefined
  const after = passes(node)
  for (const [i, address] of ADDRESSES.entries()) {
    if (before[i] !== after[i]) continue
    const odd = seen.findIndex((each) => each[i] !== before[i])
    assert.equal(odd, -1, `${address} stays ${String(before[i])}: write ${odd} of ${seen.length}`)
  }
}

for (const learning of ['node', 'endpoint'] as const) {
  test(`An endpoint changes its default egress without a gap or a leak, with learning: ${learning}`, () => {
    for (const from of DEFAULT_EGRESS) {
      for (const to of DEFAULT_EGRESS) {
        const node = mkNode(from, learning)
        assert.deepEqual(passes(node), ALLOWED[from], from)
        const { id } = node.endpoint('a')
        watch(node, () => node.endpoints.apply(records(to)))
        assert.equal(node.endpoint('a').id, id)
        assert.deepEqual(passes(node), ALLOWED[to], `${from} to ${to}`)
        assert.deepEqual(node.differences(), [], `${from} to ${to}`)
        validateCore(node.core)
      }
    }
  })

  test(`A policy with default deny replaces the default, and the default returns with learning: ${learning}`, () => {
    for (const egress of DEFAULT_EGRESS) {
      const node = mkNode(egress, learning)
      watch(node, () => setPolicies(node, DENY, STRICT))
      assert.deepEqual(passes(node), [true, false, false, false], `${egress}: its names`)
      watch(node, () => setPolicies(node, DENY))
      assert.deepEqual(passes(node), ALLOWED[egress], egress)
      assert.deepEqual(node.differences(), [])
      validateCore(node.core)
    }
  })
}

test('The label wins over the node’s default, and a default without endpoints costs nothing', () => {
  const node = new Node({ defaultEgress: 'allow-named' })
  node.setEndpoints(records('allow'))
  node.setPolicies(mkPolicies(STRICT))
  assert.equal(node.core.selectors.size, 2, 'the selector of named addresses exists for b')
  assert.equal(node.verdict('a', BARE), 'deny')
  node.setPolicies(mkPolicies('egress: [ {} ]'))
  assert.equal(node.core.selectors.size, 0, 'no endpoint uses it')
  node.learn(node.endpoint('b').id, 'n.x', [LEARNED])
  assert.deepEqual(node.labelsOf(LEARNED, node.endpoint('b').id), [])
  assert.equal(node.core.ipcache.prefixes.scoped.count, 0)
})

test('The first answer under allow-named needs no number and no policy entry (docs/spec/semantics 3)', () => {
  for (const learning of ['node', 'endpoint'] as const) {
    const node = new Node({ learning, defaultEgress: 'allow-named' })
    node.setEndpoints(records(undefined))
    node.setPolicies(mkPolicies(STRICT))
    const { allocations } = node.core.allocator
    node.recorder.takeWrites()
    node.learn(node.endpoint('b').id, 'n.x', [LEARNED])
    node.learn(node.endpoint('b').id, 'n.y', [BARE])
    assert.equal(node.core.allocator.allocations, allocations, learning)
    assert.equal(node.recorder.takeWrites().policyUpserts, 0, learning)
    assert.deepEqual(
      [LEARNED, BARE].map((each) => node.verdict('b', each)),
      ['allow', 'allow'],
    )
  }
})

test('A removed named endpoint leaves nothing in its scope, and its number is not used again', () => {
  const node = mkNode('allow-named', 'node')
  const { id } = node.endpoint('a')
  assert.ok([...node.recorder.prefixes.keys()].some((key) => key.endsWith(`@${id}`)))
  node.setEndpoints(records('allow-named').slice(1))
  assert.ok(![...node.recorder.prefixes.keys()].some((key) => key.endsWith(`@${id}`)))
  node.setEndpoints(records('allow-named'))
  assert.ok(node.endpoint('a').id > id)
  assert.deepEqual(passes(node), [false, false, false, false], 'it learned nothing')
  assert.deepEqual(node.differences(), [])
  validateCore(node.core)
})
