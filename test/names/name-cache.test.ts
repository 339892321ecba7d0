import assert from 'node:assert/strict'
import { test } from 'node:test'
import { endpointId } from '../../src/core/ids.ts'
import { OWNER_POLICY } from '../../src/ipcache/facts.ts'
import { mkEndpoint, mkPolicies, Node, prefixOf, type NodeOptions } from '../support/nodes/node.ts'

const E1 = endpointId(1)
const E2 = endpointId(2)

/** A node with endpoints 1 and 2 and the selectors `*.x` and `a.x`. */
function mkNode(options: NodeOptions = {}): Node {
  const node = new Node(options)
  node.setEndpoints([mkEndpoint('a', ['10.0.0.1', 'fd00::1']), mkEndpoint('b', ['10.0.0.2'])])
  node.setPolicies(
    mkPolicies('egress: [ { toFQDNs: [ { matchPattern: "*.x" }, { matchName: a.x } ] } ]'),
  )
  node.recorder.takeWrites()
  return node
}

function counts(node: Node): readonly number[] {
  const { names, mappings, entries } = node.core.names
  return [names.slots.used, mappings.slots.used, entries.slots.used]
}

function entryOf(node: Node, endpoint: typeof E1, address: string): number {
  const { mappings, entries } = node.core.names
  const mapping = mappings.firstOfPrefix[node.rowOf(address)] ?? 0
  return entries.find(mapping, endpoint)
}

function forget(node: Node, endpoint: typeof E1, address: string): void {
  node.core.names.forget(entryOf(node, endpoint, address))
  node.core.committer.commit()
}

test('NameCache labels an address with every selector that matches the name', () => {
  const node = mkNode()
  node.learn(E1, 'a.x', ['192.0.2.1', '2001:db8::1'])
  node.learn(E1, 'b.x', ['192.0.2.2'])
  node.learn(E1, 'a.b.x', ['192.0.2.3'])
  assert.deepEqual(node.labelsOf('192.0.2.1'), [
    'fqdn:*.x',
    'fqdn:a.x',
    'reserved:world',
    'reserved:world-ipv4',
  ])
  assert.deepEqual(node.labelsOf('2001:db8::1'), [
    'fqdn:*.x',
    'fqdn:a.x',
    'reserved:world',
    'reserved:world-ipv6',
  ])
  assert.deepEqual(node.labelsOf('192.0.2.2'), [
    'fqdn:*.x',
    'reserved:world',
    'reserved:world-ipv4',
  ])
  assert.deepEqual(node.labelsOf('192.0.2.3'), [], 'no selector matches')
  assert.deepEqual(counts(node), [3, 4, 4], 'kept for later selectors')
  assert.deepEqual(node.differences(), [])
})

test('NameCache keeps a fact until its last entry is removed (docs/spec/semantics 5)', () => {
  const node = mkNode()
  node.learn(E1, 'a.x', ['192.0.2.1'])
  node.learn(E2, 'a.x', ['192.0.2.1'])
  assert.deepEqual(counts(node), [1, 1, 2])
  forget(node, E1, '192.0.2.1')
  assert.equal(node.labelsOf('192.0.2.1').length, 4)
  forget(node, E2, '192.0.2.1')
  assert.deepEqual(counts(node), [0, 0, 0])
  assert.equal(node.rowOf('192.0.2.1'), 0)
  assert.deepEqual(node.differences(), [])
})

test('NameCache.forget of one name never changes another on the same address (invariant 5)', () => {
  const node = mkNode()
  node.learn(E1, 'a.x', ['192.0.2.1'])
  const before = node.identityOf('192.0.2.1')
  node.learn(E1, 'b.x', ['192.0.2.1'])
  assert.equal(node.identityOf('192.0.2.1'), before, 'b.x adds no label that a.x lacks')
  forget(node, E1, '192.0.2.1')
  assert.equal(node.identityOf('192.0.2.1'), before)
})

test('NameCache learns an equal answer without a write (invariant 8)', () => {
  const node = mkNode()
  node.learn(E1, 'a.x', ['192.0.2.1', '192.0.2.2'])
  const revision = node.core.committer.revision
  node.recorder.takeWrites()
  node.learn(E1, 'a.x', ['192.0.2.2', '192.0.2.1'])
  assert.equal(node.recorder.takeWrites().commits, 0)
  assert.equal(node.core.committer.revision, revision)
})

test('NameCache keeps the later end when a later answer has a smaller TTL', () => {
  const node = mkNode()
  node.learn(E1, 'a.x', ['192.0.2.1'], 300)
  const end = node.core.names.entries.liveUntil[entryOf(node, E1, '192.0.2.1')]
  node.learn(E1, 'a.x', ['192.0.2.1'], 5)
  assert.equal(node.core.names.entries.liveUntil[entryOf(node, E1, '192.0.2.1')], end)
  node.clock.advance(100_000)
  node.learn(E1, 'a.x', ['192.0.2.1'], 300)
  assert.equal(node.core.names.entries.liveUntil[entryOf(node, E1, '192.0.2.1')], (end ?? 0) + 100)
})

test('NameCache leaves an address out at a bound, reports it and keeps known ones', () => {
  const rows: readonly (readonly [options: NodeOptions, reason: string])[] = [
    [{ bounds: { 'addresses-per-name': 2 } }, 'addresses per name'],
    [{ pairs: 2 }, 'pairs'],
  ]
  for (const [options, reason] of rows) {
    const node = mkNode(options)
    const rowsOf = node.learn(E1, 'a.x', ['192.0.2.1', '192.0.2.2', '192.0.2.3'])
    assert.deepEqual(
      rowsOf.map((row) => row !== 0),
      [true, true, false],
      reason,
    )
    assert.equal(node.core.names.boundHits, 1, reason)
    assert.ok(node.learn(E1, 'a.x', ['192.0.2.1'])[0] !== 0, 'a known address is still renewed')
    assert.deepEqual(counts(node), [1, 2, 2], reason)
    assert.deepEqual(node.differences(), [])
    forget(node, E1, '192.0.2.1')
    assert.ok(node.learn(E1, 'a.x', ['192.0.2.3'])[0] !== 0, 'there is room again')
  }
})

test('NameCache undoes everything when an address has no room for its fact', () => {
  const node = mkNode({ pairs: 4, configuredPrefixes: 4 })
  const { ipcache, labelSets } = node.core
  const set = labelSets.intern(['cidr:203.0.113.0/24'])
  const prefix = prefixOf('203.0.113.0/24')
  let owner = 1000
  while (ipcache.addPrefixFact(prefix, OWNER_POLICY, owner, set) !== 0) owner++
  assert.ok(owner > 1000)
  assert.deepEqual(node.learn(E1, 'a.x', ['192.0.2.1']), [0])
  assert.equal(node.core.names.boundHits, 1)
  assert.deepEqual(counts(node), [0, 0, 0])
  assert.equal(node.rowOf('192.0.2.1'), 0)
  assert.notEqual(
    node.learn(E1, 'other.y', ['192.0.2.1'])[0],
    0,
    'no selector, no fact, room enough',
  )
})
