// What is evicted at each bound (docs/spec/semantics 6), and what never is.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NameBounds } from '../../../src/names/eviction/eviction.ts'
import { mkEndpoint, mkPolicies, Node, prefixOf } from '../../support/nodes/node.ts'

const TTL = 300

function mkNode(bounds: Partial<NameBounds>): Node {
  const { pairs = 64, ...others } = bounds
  const node = new Node({ pairs, bounds: others, graceSeconds: 10 })
  node.setEndpoints([mkEndpoint('a', ['10.0.0.1']), mkEndpoint('b', ['10.0.0.2'])])
  node.setPolicies(
    mkPolicies('egress: [ { toFQDNs: [ { matchPattern: "*.x" }, { matchName: exact.x } ] } ]'),
  )
  return node
}

/** Learns one answer, a second after the one before. */
function learn(
  node: Node,
  endpoint: string,
  name: string,
  addresses: readonly string[],
  ttl = TTL,
) {
  node.clock.advance(1000)
  return node.learn(node.endpoint(endpoint).id, name, addresses, ttl)
}

/** Opens a connection, and lets namegate read it. */
function connect(node: Node, endpoint: string, address: string): void {
  node.recorder.connections.push({ endpoint: node.endpoint(endpoint).id, peer: prefixOf(address) })
  look(node)
}

/** After this time an entry is always due. */
function look(node: Node): void {
  learn(node, 'b', 'due.y', ['203.0.113.255'], 0)
  node.clock.advance(11_000)
  while (!node.core.expiry.step(1)) node.clock.advance(0)
  node.core.committer.commit()
}

function known(node: Node, ...addresses: readonly string[]): string {
  return addresses.filter((address) => node.rowOf(address) !== 0).join(' ')
}

test('Eviction removes the address that expires first, of those without a connection', () => {
  const node = mkNode({ 'addresses-per-name': 2 })
  learn(node, 'a', 'n.x', ['192.0.2.1'], 500)
  learn(node, 'a', 'n.x', ['192.0.2.2'], 100)
  learn(node, 'a', 'n.x', ['192.0.2.3'], 300)
  assert.equal(known(node, '192.0.2.1', '192.0.2.2', '192.0.2.3'), '192.0.2.1 192.0.2.3')
  connect(node, 'a', '192.0.2.3')
  learn(node, 'a', 'n.x', ['192.0.2.4'], 50)
  assert.equal(known(node, '192.0.2.1', '192.0.2.3', '192.0.2.4'), '192.0.2.3 192.0.2.4')
  connect(node, 'a', '192.0.2.4')
  learn(node, 'a', 'n.x', ['192.0.2.5'], 50)
  const left = known(node, '192.0.2.3', '192.0.2.4', '192.0.2.5')
  assert.equal(left, '192.0.2.3 192.0.2.5', 'all connected: the one that expires first')
  assert.equal(node.core.names.eviction.hits['addresses-per-name'], 3)
  assert.deepEqual(node.differences(), [])
})

test('Eviction removes an entry that was never connected before one whose connection ended', () => {
  const node = mkNode({ 'pairs-per-endpoint': 2 })
  learn(node, 'a', 'n.x', ['192.0.2.1'], 100)
  connect(node, 'a', '192.0.2.1')
  node.recorder.connections.length = 0
  look(node)
  learn(node, 'a', 'm.x', ['192.0.2.2'], 5000)
  learn(node, 'a', 'o.x', ['192.0.2.3'], 100)
  assert.equal(known(node, '192.0.2.1', '192.0.2.2', '192.0.2.3'), '192.0.2.1 192.0.2.3')
  assert.equal(node.core.names.eviction.hits['pairs-per-endpoint'], 1)
})

test('Eviction counts the addresses of a name separately for each endpoint', () => {
  const node = mkNode({ 'addresses-per-name': 2 })
  learn(node, 'b', 'n.x', ['192.0.2.8', '192.0.2.9'])
  learn(node, 'a', 'n.x', ['192.0.2.1', '192.0.2.2'])
  learn(node, 'a', 'n.x', ['192.0.2.3', '192.0.2.4'])
  assert.equal(known(node, '192.0.2.8', '192.0.2.9'), '192.0.2.8 192.0.2.9')
  assert.equal(known(node, '192.0.2.1', '192.0.2.2', '192.0.2.3'), '192.0.2.3')
})

test('Eviction removes from the endpoint with most entries when there are too many in all', () => {
  const node = mkNode({ pairs: 6 })
  learn(node, 'b', 'first.x', ['198.51.100.1'], 1)
  for (let i = 1; i <= 9; i++) learn(node, 'a', `n${i}.x`, [`192.0.2.${i}`])
  assert.notEqual(node.rowOf('198.51.100.1'), 0, "within b's share, although it expires first")
  assert.equal(node.core.names.entries.slots.used, 6)
  assert.equal(node.core.names.eviction.hits.pairs, 4)
  learn(node, 'b', 'second.x', ['198.51.100.2'])
  assert.equal(
    node.core.names.rows.orders.count(node.endpoint('b').id),
    2,
    'entries of a make room for b',
  )
})

test('Eviction removes the name under a wildcard that was asked longest ago, and never an exact one', () => {
  const node = mkNode({ 'names-per-wildcard': 2 })
  learn(node, 'a', 'exact.x', ['192.0.2.9'])
  learn(node, 'a', 'one.x', ['192.0.2.1', '192.0.2.11'])
  learn(node, 'a', 'two.x', ['192.0.2.2'])
  learn(node, 'a', 'one.x', ['192.0.2.1'])
  learn(node, 'a', 'three.x', ['192.0.2.3'])
  assert.equal(known(node, '192.0.2.1', '192.0.2.2', '192.0.2.3'), '192.0.2.1 192.0.2.3')
  connect(node, 'a', '192.0.2.11')
  learn(node, 'a', 'four.x', ['192.0.2.4'])
  const left = known(node, '192.0.2.1', '192.0.2.3', '192.0.2.4', '192.0.2.9')
  assert.equal(left, '192.0.2.1 192.0.2.4 192.0.2.9', 'one.x has an open connection')
  learn(node, 'b', 'five.x', ['192.0.2.5'])
  assert.equal(known(node, '192.0.2.1', '192.0.2.4'), '192.0.2.1 192.0.2.4', 'the names of b stay')
  connect(node, 'a', '192.0.2.4')
  learn(node, 'a', 'six.x', ['192.0.2.6'])
  const last = known(node, '192.0.2.1', '192.0.2.4', '192.0.2.6')
  assert.equal(last, '192.0.2.4 192.0.2.6', 'all connected: the one asked longest ago')
  assert.deepEqual(node.differences(), [])
})

test('Eviction holds the bound of a wildcard that is added later, for known names', () => {
  const node = mkNode({ 'names-per-wildcard': 3 })
  for (let i = 1; i <= 8; i++) learn(node, 'a', `n${i}.z`, [`192.0.2.${i}`])
  node.core.names.begin()
  node.setPolicies(mkPolicies('egress: [ { toFQDNs: [ { matchPattern: "*.z" } ] } ]'))
  assert.equal(node.core.names.names.slots.used, 3)
  assert.equal(known(node, '192.0.2.6', '192.0.2.7', '192.0.2.8').split(' ').length, 3)
  assert.deepEqual(node.differences(), [])
})

const LETTERS = 'abcdefghij'
/** Ten wildcards, all of which match a name with all ten letters, and two exact names. */
const WILDCARDS = LETTERS.replaceAll(/./g, ', { matchPattern: "*$&*.x" }')
const MANY_WILDCARDS = `egress: [ { toFQDNs: [ { matchName: kept.x }, { matchName: kept.y }${WILDCARDS} ] } ]`

function mkWildcards(bounds: Partial<NameBounds>): Node {
  const node = mkNode(bounds)
  node.setPolicies(mkPolicies(MANY_WILDCARDS))
  return node
}

function countOf(node: Node, endpoint: string): number {
  return node.core.names.rows.orders.count(node.endpoint(endpoint).id)
}

test('Eviction removes rows for names under wildcards of the endpoint that asks, and exact names last', () => {
  const node = mkWildcards({ pairs: 200, 'wildcard-names': 400 })
  node.setPolicies(
    mkPolicies(
      MANY_WILDCARDS,
      `egress: [ { toFQDNs: [ ${Array.from({ length: 100 }, (_, i) => `{ matchName: e${i}.y }`).join(', ')} ] } ]`,
    ),
  )
  for (let i = 0; i < 100; i++) learn(node, 'a', `e${i}.y`, [`192.0.2.${i}`], 900)
  learn(node, 'b', 'kept.y', ['198.51.100.250'])
  for (let i = 0; i < 45; i++) {
    const taught = learn(node, 'b', `${LETTERS}${i}.x`, [`198.51.100.${i}`])
    assert.notEqual(taught[0], 0, `name ${i} is learned`)
  }
  assert.deepEqual([countOf(node, 'a'), countOf(node, 'b')], [100, 41], 'b loses only its own rows')
  assert.deepEqual(
    ['0', '4', '5', '44', '250'].map((last) => node.rowOf(`198.51.100.${last}`) !== 0),
    [false, false, true, true, true],
    'those that were asked longest ago, and not the exact name',
  )
  const { hits, uses } = {
    hits: node.core.names.eviction.hits,
    uses: node.core.names.eviction.uses(),
  }
  assert.deepEqual([hits['wildcard-names'], hits.pairs, uses['wildcard-names']], [5, 0, 400])
  assert.deepEqual(node.differences(), [])
})

test('Eviction does not learn a name that needs a row of another endpoint', () => {
  const node = mkWildcards({ 'wildcard-names': 20 })
  for (const i of [1, 2]) learn(node, 'a', `${LETTERS}${i}.x`, [`192.0.2.${i}`])
  assert.deepEqual(learn(node, 'b', `${LETTERS}3.x`, ['192.0.2.3']), [0])
  assert.notEqual(
    learn(node, 'b', 'kept.x', ['192.0.2.4'])[0],
    0,
    'an exact name needs no such row',
  )
  assert.deepEqual([countOf(node, 'a'), countOf(node, 'b')], [2, 1])
  assert.deepEqual(node.core.names.eviction.hits['wildcard-names'], 1)
})

test("Eviction limits an endpoint's rows for names under wildcards, and spares connected names", () => {
  const node = mkWildcards({ 'wildcard-names-per-endpoint': 20 })
  for (const i of [1, 2]) learn(node, 'a', `${LETTERS}${i}.x`, [`192.0.2.${i}`])
  connect(node, 'a', '192.0.2.1')
  learn(node, 'a', `${LETTERS}3.x`, ['192.0.2.3'])
  assert.equal(known(node, '192.0.2.1', '192.0.2.2', '192.0.2.3'), '192.0.2.1 192.0.2.3')
  learn(node, 'b', `${LETTERS}4.x`, ['192.0.2.4'])
  assert.equal(countOf(node, 'a'), 2, 'b has rows of its own')
  const { eviction } = node.core.names
  assert.deepEqual(
    [eviction.hits['wildcard-names-per-endpoint'], eviction.uses()['wildcard-names-per-endpoint']],
    [1, 20],
  )
  node.setPolicies(mkPolicies(MANY_WILDCARDS, 'egress: [ { toFQDNs: [ { matchPattern: "*" } ] } ]'))
  assert.equal(known(node, '192.0.2.1', '192.0.2.3'), '192.0.2.1', 'a wildcard that is added later')
  assert.deepEqual(node.differences(), [])
})

test('Eviction does not learn a name that needs more rows than its endpoint can have, and removes nothing for it', () => {
  const node = mkWildcards({ 'wildcard-names-per-endpoint': 9 })
  learn(node, 'a', 'a.x', ['192.0.2.1'])
  assert.deepEqual(learn(node, 'a', `${LETTERS}.x`, ['192.0.2.2']), [0])
  assert.equal(known(node, '192.0.2.1', '192.0.2.2'), '192.0.2.1')
})

test('Eviction removes exact names last at the bounds of entries', () => {
  for (const bounds of [{ 'pairs-per-endpoint': 3 }, { pairs: 3 }]) {
    const node = mkNode(bounds)
    learn(node, 'a', 'exact.x', ['192.0.2.1'], 1)
    for (const n of [2, 3, 4]) learn(node, 'a', `n${n}.x`, [`192.0.2.${n}`], 900)
    const left = known(node, '192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.4')
    assert.equal(left, '192.0.2.1 192.0.2.3 192.0.2.4', Object.keys(bounds).join())
  }
})

test('Eviction removes the name of an address that was asked longest ago, of the endpoint with most names there', () => {
  const node = mkNode({ 'names-per-address': 3 })
  learn(node, 'b', 'own.x', ['192.0.2.1'])
  for (const name of ['one.x', 'two.x', 'three.x', 'four.x']) learn(node, 'a', name, ['192.0.2.1'])
  const { names } = node.core.names
  const left = [1, 2, 3, 4, 5, 6].filter((row) => names.isUsed(row)).map((row) => names.format(row))
  assert.deepEqual(left.sort(), ['four.x', 'own.x', 'three.x'])
  assert.deepEqual(node.differences(), [])
})

test('Eviction never removes what the same batch of answers taught: it does not learn the new name', () => {
  const rows: readonly Partial<NameBounds>[] = [
    { 'addresses-per-name': 2 },
    { 'pairs-per-endpoint': 2 },
    { pairs: 2 },
  ]
  for (const bounds of rows) {
    const node = mkNode(bounds)
    const taught = learn(node, 'a', 'n.x', ['192.0.2.1', '192.0.2.2', '192.0.2.3'])
    assert.deepEqual(
      taught.map((row) => row !== 0),
      [true, true, false],
    )
    assert.equal(known(node, '192.0.2.1', '192.0.2.2'), '192.0.2.1 192.0.2.2')
    learn(node, 'a', 'n.x', ['192.0.2.3'])
    assert.notEqual(node.rowOf('192.0.2.3'), 0, 'the next batch finds room')
  }
})

test('Eviction.uses counts the largest name and the largest address, however small their bounds are', () => {
  const node = mkNode({ 'addresses-per-name': 5, 'names-per-address': 3 })
  for (const n of [1, 2, 3, 4, 5, 6]) learn(node, 'a', 'n.x', [`192.0.2.${n}`])
  for (const name of ['k.x', 'l.x']) learn(node, 'a', name, ['192.0.2.6'])
  const { eviction } = node.core.names
  assert.equal(eviction.uses()['addresses-per-name'], 5)
  assert.equal(eviction.hits['addresses-per-name'], 1)
  assert.equal(eviction.uses()['names-per-address'], 3)
})
