// docs/spec/semantics 3, "Static and dynamic" and "At the bound", under attack. An endpoint makes as many label sets as it can, and the
// names and policies of other endpoints are not affected.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ROW_DEGRADED } from '../../src/ipcache/ipcache.ts'
import { mkEndpoint, mkPolicies, Node } from '../support/nodes/node.ts'

const PER_ENDPOINT = 64
const LETTERS = Array.from({ length: 20 }, (_, i) => String.fromCharCode(97 + i))

function isExact(node: Node, address: string): boolean {
  const row = node.rowOf(address)
  return row !== 0 && ((node.core.ipcache.prefixes.flags[row] ?? 0) & ROW_DEGRADED) === 0
}

function address(n: number): string {
  return `198.18.${n >> 8}.${n & 255}`
}

function mkNode(...specs: readonly string[]): Node {
  const node = new Node({ dynamicPerEndpoint: PER_ENDPOINT, pairs: 8192, configuredPrefixes: 8192 })
  node.setEndpoints([
    mkEndpoint('attacker', ['10.0.0.1'], ['k8s:app=attacker']),
    mkEndpoint('other', ['10.0.0.2'], ['k8s:app=other']),
  ])
  node.setPolicies(mkPolicies(...specs))
  return node
}

/** Edits the other endpoint's policy, and checks that its names get all their labels. */
function assertOthersUnharmed(node: Node, ...specs: readonly string[]): void {
  const own = `
endpointSelector: { matchLabels: { app: other } }
egress: [ { toFQDNs: [ { matchPattern: "*.shop" }, { matchName: pay.shop } ] }, { toCIDR: [ 203.0.113.0/24 ] } ]`
  node.setPolicies(mkPolicies(...specs, own))
  const { id } = node.endpoint('other')
  const names = ['pay.shop', 'new.shop', 'more.shop']
  names.forEach((name, i) => node.learn(id, name, [`203.0.113.${i + 1}`, `192.0.2.${i + 1}`]))
  for (let i = 1; i <= names.length; i++) {
    for (const each of [`203.0.113.${i}`, `192.0.2.${i}`]) {
      assert.ok(isExact(node, each), `${each} has all its labels`)
      assert.equal(node.verdict('other', each), 'allow')
      assert.equal(node.verdict('attacker', each), 'deny')
    }
  }
  assert.equal(node.core.policyMaps.overflows, 0)
  assert.deepEqual(node.differences(), [])
}

test("20 overlapping selectors and names of its choice cost an attacker its own budget, and no other endpoint's", () => {
  const patterns = LETTERS.map((letter) => `{ matchPattern: "**${letter}**.evil" }`).join(', ')
  const attack = `
endpointSelector: { matchLabels: { app: attacker } }
egress: [ { toFQDNs: [ ${patterns.replaceAll('**', '*')} ] } ]`
  const node = mkNode(attack)
  const { id } = node.endpoint('attacker')
  const { allocator, ipcache, policyMaps } = node.core
  for (let n = 1; n <= 1000; n++) {
    const name = LETTERS.filter((_, i) => ((n * 2654435) >> i) & 1).join('')
    node.learn(id, `${name}z.evil`, [address(n)])
    assert.ok(allocator.budget.usedBy(id) <= PER_ENDPOINT)
    assert.ok(policyMaps.dynamicSizeOf(id) <= 16_384 / 4)
  }
  assert.equal(allocator.budget.usedBy(id), PER_ENDPOINT)
  assert.ok(ipcache.degraded.size > 500, `${ipcache.degraded.size} prefixes have fewer labels`)
  assert.deepEqual([...ipcache.degraded.byEndpoint().keys()], [Number(id)])
  assertOthersUnharmed(node, attack)
})

test("One wildcard over 2,000 selected /24 and 2,000 resources costs an attacker its own budget, and no other endpoint's", () => {
  const cidrs = Array.from({ length: 2000 }, (_, i) => `100.${64 + (i >> 8)}.${i & 255}.0/24`)
  const attack = `
endpointSelector: { matchLabels: { app: attacker } }
egress: [ { toFQDNs: [ { matchPattern: "*.evil" } ] } ]
egressDeny: [ { toCIDR: [ ${cidrs.join(', ')} ] } ]`
  const node = mkNode(attack)
  node.endpoints.apply([
    mkEndpoint('attacker', ['10.0.0.1'], ['k8s:app=attacker']),
    mkEndpoint('other', ['10.0.0.2'], ['k8s:app=other']),
    ...Array.from({ length: 2000 }, (_, i) =>
      mkEndpoint(`r${i}`, [`172.16.${i >> 8}.${i & 255}`], [`k8s:n=${i}`]),
    ),
  ])
  node.settle()
  const { id } = node.endpoint('attacker')
  for (let i = 0; i < 2000; i++) {
    const inside = `100.${64 + (i >> 8)}.${i & 255}.7`
    node.learn(id, `n${i}.evil`, [inside, `172.16.${i >> 8}.${i & 255}`])
    assert.equal(node.verdict('attacker', inside), 'deny', 'denied, with or without a number')
  }
  assert.equal(node.core.allocator.budget.usedBy(id), PER_ENDPOINT)
  assert.equal(node.verdict('attacker', '172.16.0.1') === 'allow', isExact(node, '172.16.0.1'))
  assertOthersUnharmed(node, attack)
})

test('Degraded prefixes get their labels when numbers are free again', () => {
  const node = mkNode(`
egress: [ { toFQDNs: [ { matchPattern: "*.x" } ] }, { toCIDR: [ ${Array.from({ length: 100 }, (_, i) => `198.18.${i}.0/24`).join(', ')} ] } ]`)
  const { id } = node.endpoint('attacker')
  for (let i = 0; i < 100; i++) node.learn(id, `n${i}.x`, [`198.18.${i}.1`], i < 80 ? 10 : 1000)
  assert.equal(isExact(node, '198.18.99.1'), false)
  assert.equal(node.verdict('attacker', '198.18.99.1'), 'allow', 'by the prefix')
  node.clock.advance(100_000)
  while (!node.core.expiry.step(1)) node.clock.advance(0)
  node.core.committer.commit()
  node.core.committer.retry()
  node.core.committer.commit()
  assert.ok(isExact(node, '198.18.99.1'))
  assert.equal(node.core.ipcache.degraded.size, 0)
  assert.deepEqual(node.differences(), [])
})

test('Identities of answers have at most a quarter of a policy map, and denies hold beyond it', () => {
  const cidrs = Array.from({ length: 40 }, (_, i) => `198.18.${i}.0/24`)
  const node = new Node({ policyEntries: 120, dynamicIdentities: 4096 })
  node.setEndpoints([mkEndpoint('a', ['10.0.0.1'])])
  node.setPolicies(
    mkPolicies(`
egress: [ { toFQDNs: [ { matchPattern: "*.x" } ], toPorts: [ { ports: [ { port: "443" }, { port: "80" } ] } ] }, { toEntities: [ world ] } ]
egressDeny: [ { toCIDR: [ ${cidrs.join(', ')} ] } ]`),
  )
  const { id } = node.endpoint('a')
  for (let i = 0; i < 40; i++) {
    node.learn(id, `n${i}.x`, [`198.18.${i}.1`])
    assert.ok(node.core.policyMaps.dynamicSizeOf(id) <= 30)
    assert.equal(node.verdict('a', `198.18.${i}.1`), 'deny')
  }
  assert.ok(node.core.ipcache.degraded.size > 0)
  assert.equal(node.core.policyMaps.overflows, 0)
  assert.deepEqual(node.differences(), [])
})
