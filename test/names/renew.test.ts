// Answers with known addresses: NameCache.findCurrent and NameCache.renew compared with NameCache.learn.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FewSet } from '../../src/core/tables/few.ts'
import { endpointId, selectorId, type Identity } from '../../src/core/ids.ts'
import { parseMatchPattern } from '../../src/policy/match/pattern.ts'
import { hashedName, lessonOf } from '../support/hashed-name.ts'
import { mkEndpoint, mkPolicies, Node, prefixOf } from '../support/nodes/node.ts'

const E1 = endpointId(1)
const E2 = endpointId(2)
const TTL = 30
const GRACE = 10

function mkNode(): Node {
  const node = new Node({ graceSeconds: GRACE })
  node.setEndpoints([mkEndpoint('a', ['10.0.0.1']), mkEndpoint('b', ['10.0.0.2'])])
  node.setPolicies(mkPolicies('egress: [ { toFQDNs: [ { matchPattern: "*.x" } ] } ]'))
  return node
}

function find(node: Node, text: string): number {
  return node.core.names.findCurrent(hashedName(text))
}

function renew(node: Node, endpoint: typeof E1, name: string, address: string, ttl = TTL): number {
  const row = find(node, name)
  if (row === 0) return 0
  const { names } = node.core
  const { family, octets } = prefixOf(address)
  const taught = { endpoint, name: hashedName(name), family, octets, ttl }
  return names.renew(row, lessonOf(names, taught))
}

function wait(node: Node, seconds: number): void {
  node.clock.advance(seconds * 1000)
  while (!node.core.expiry.step(1)) node.clock.advance(0)
  node.core.committer.commit()
}

test('NameCache.renew finds what that endpoint learned for the name and address, and nothing else', () => {
  const node = mkNode()
  node.learn(E1, 'a.x', ['192.0.2.1', '192.0.2.2', '2001:db8::1'], TTL)
  node.learn(E2, 'a.x', ['192.0.2.2'], TTL)
  node.learn(E1, 'b.x', ['192.0.2.3'], TTL)
  const rows = [
    [E1, 'a.x', '192.0.2.1', true, 'learned'],
    [E1, 'a.x', '2001:db8::1', true, 'learned, IPv6'],
    [E2, 'a.x', '192.0.2.2', true, 'both learned it'],
    [E2, 'a.x', '192.0.2.1', false, 'only the other endpoint learned it'],
    [E1, 'a.x', '192.0.2.3', false, 'another name of the endpoint has that address'],
    [E1, 'a.x', 'c000:0201::', false, 'the octets of the IPv4 address, as IPv6'],
    [E1, 'c.x', '192.0.2.1', false, 'a name never learned'],
  ] as const
  for (const [endpoint, name, address, known, reason] of rows) {
    const row = renew(node, endpoint, name, address)
    assert.equal(row, known ? node.rowOf(address) : 0, reason)
  }
  assert.deepEqual(node.differences(), [])
})

test('NameCache.renew leaves a name with labels of other selectors to learn', () => {
  const node = mkNode()
  node.learn(E1, 'a.x', ['192.0.2.1'], TTL)
  assert.notEqual(find(node, 'a.x'), 0)
  const parsed = parseMatchPattern('a.x')
  assert.ok(parsed.kind === 'ok')
  const { pattern } = parsed
  const id = selectorId(999)
  const identities = new FewSet<Identity>()
  const selector = { id, text: 'a.x', label: 'fqdn:a.x', pattern, identities }
  node.core.selectorLabels.ensure({ kind: 'fqdn', ...selector })
  assert.equal(find(node, 'a.x'), 0)
})

test('NameCache.renew prolongs an entry, never shortens it, and the entry ends in time', () => {
  const node = mkNode()
  node.learn(E1, 'a.x', ['192.0.2.1'], TTL)
  wait(node, TTL)
  renew(node, E1, 'a.x', '192.0.2.1', TTL)
  renew(node, E1, 'a.x', '192.0.2.1', 1)
  const { looks } = node.core.expiry
  wait(node, GRACE + 1)
  assert.notEqual(node.rowOf('192.0.2.1'), 0, 'due by its first TTL, but prolonged')
  assert.equal(node.core.expiry.looks, looks, 'without a look at connections')
  wait(node, TTL - 1)
  assert.notEqual(node.rowOf('192.0.2.1'), 0, 'the last second of grace')
  wait(node, 1)
  assert.equal(node.rowOf('192.0.2.1'), 0)
  assert.equal(node.core.expiry.forgotten, 1)
  assert.deepEqual(node.differences(), [])
})
