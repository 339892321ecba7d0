// What one endpoint learns costs no other endpoint an entry: random answers, connections and changes of policy, with random small bounds of
// entries, names and rows for wildcards. Every evicted entry belongs to the endpoint that asks, and its exact names are evicted last. Only
// the bound of all entries is shared, and evicts from an endpoint with most entries.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { formatAddress } from '../../src/core/ip.ts'
import type { NameBounds } from '../../src/names/eviction/eviction.ts'
import { mkEndpoint, mkPolicies, Node, prefixOf } from '../support/nodes/node.ts'

const ENDPOINTS = ['a', 'b', 'c'] as const
/** The wildcards of each policy, and which of the names `NAMES` they match. */
const WILDCARDS = [
  { '*.x': /^.*$/, '*a*.x': /a/, '*b*.x': /b/ },
  { '*a*.x': /a/, '*c*.x': /c/, 'a*.x': /^a/ },
] as const
const EXACT = ['abc', 'd']
const NAMES = [...EXACT, 'a', 'b', 'c', 'ab', 'bc', 'ca', 'aa', 'bb']
const ADDRESSES = 12

interface Seen {
  readonly endpoint: string
  readonly name: string
  readonly connected: boolean
}

const index = (count: number) => fc.integer({ min: 0, max: count - 1 })
const answer = fc.record({
  kind: fc.constant('answer' as const),
  endpoint: fc.constantFrom(...ENDPOINTS),
  name: fc.constantFrom(...NAMES),
  addresses: fc.uniqueArray(index(ADDRESSES), { minLength: 1, maxLength: 3 }),
  ttl: fc.integer({ min: 1000, max: 9000 }),
})
const connection = fc.record({
  kind: fc.constantFrom('open' as const, 'close' as const),
  endpoint: fc.constantFrom(...ENDPOINTS),
  address: index(ADDRESSES),
})
const policy = fc.record({ kind: fc.constant('policy' as const), number: index(WILDCARDS.length) })
const step = fc.oneof(
  { weight: 12, arbitrary: answer },
  { weight: 3, arbitrary: connection },
  { weight: 1, arbitrary: policy },
)
const steps = fc.array(step, { minLength: 20, maxLength: 80 })
const few = (max: number) => fc.oneof(fc.integer({ min: 1, max }), fc.constant(1000))
const bounds = fc.record({
  'addresses-per-name': few(4),
  'names-per-wildcard': few(5),
  'wildcard-names': few(20),
  'wildcard-names-per-endpoint': few(12),
  'pairs-per-endpoint': few(10),
  pairs: fc.oneof(fc.integer({ min: 6, max: 20 }), fc.constant(1000)),
})

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

class World {
  readonly #node: Node
  readonly #bounds: Partial<NameBounds>
  #wildcards: Readonly<Record<string, RegExp>> = {}

  constructor(given: Partial<NameBounds> & { readonly pairs: number }) {
    this.#bounds = given
    this.#node = new Node({ pairs: given.pairs, bounds: given, graceSeconds: 10 })
    this.#node.setEndpoints(ENDPOINTS.map((name, i) => mkEndpoint(name, [`10.0.0.${i + 1}`])))
    this.#setPolicy(0)
  }

  run(given: Step): void {
    this.#node.clock.advance(1000)
    if (given.kind === 'policy') this.#setPolicy(given.number)
    else if (given.kind === 'answer') this.#answer(given)
    else this.#connect(given.kind, given.endpoint, addressOf(given.address))
    this.#checkRows()
    assert.deepEqual(this.#node.differences(), [])
  }

  #setPolicy(number: number): void {
    this.#wildcards = WILDCARDS[number] ?? {}
    this.#node.core.names.begin()
    const exact = EXACT.map((name) => `{ matchName: ${name}.x }`)
    const wild = Object.keys(this.#wildcards).map((text) => `{ matchPattern: "${text}" }`)
    this.#node.setPolicies(
      mkPolicies(`egress: [ { toFQDNs: [ ${[...exact, ...wild].join(', ')} ] } ]`),
    )
  }

  #answer({ endpoint, name, addresses, ttl }: Extract<Step, { kind: 'answer' }>): void {
    const before = this.#entries()
    this.#node.learn(this.#node.endpoint(endpoint).id, `${name}.x`, addresses.map(addressOf), ttl)
    const after = this.#entries()
    const gone = [...before].filter(([key]) => !after.has(key)).map(([, seen]) => seen)
    const countOf = (each: string): number =>
      [...before.values()].filter((seen) => seen.endpoint === each).length
    const most = Math.max(...ENDPOINTS.map(countOf))
    for (const evicted of gone) {
      if (evicted.endpoint !== endpoint) {
        assert.equal(
          before.size + addresses.length > (this.#bounds.pairs ?? 0),
          true,
          'pairs in all',
        )
        assert.ok(
          countOf(evicted.endpoint) + addresses.length >= most,
          'an endpoint with most entries',
        )
      }
      // At the bound of its name, an address replaces another address of the name.
      if (!EXACT.includes(evicted.name) || evicted.name === name || evicted.connected) continue
      const others = [...before].filter(
        ([key, seen]) => after.has(key) && seen.endpoint === evicted.endpoint && seen.name !== name,
      )
      for (const [, seen] of others)
        assert.ok(EXACT.includes(seen.name) || seen.connected, 'exact names are evicted last')
    }
  }

  /** Rows for wildcards, counted entry by entry, are within their bounds and equal the gauges. */
  #checkRows(): void {
    const names = new Map<string, Set<string>>(ENDPOINTS.map((each) => [each, new Set()]))
    for (const { endpoint, name } of this.#entries().values()) names.get(endpoint)?.add(name)
    const rowsOf = (name: string): number =>
      EXACT.includes(name)
        ? 0
        : Object.values(this.#wildcards).filter((pattern) => pattern.test(name)).length
    const rows = ENDPOINTS.map((each) =>
      [...(names.get(each) ?? [])].reduce((sum, name) => sum + rowsOf(name), 0),
    )
    const uses = this.#node.core.names.eviction.uses()
    const all = rows.reduce((sum, each) => sum + each, 0)
    assert.deepEqual(
      [uses['wildcard-names'], uses['wildcard-names-per-endpoint']],
      [all, Math.max(...rows)],
    )
    for (const bound of ['wildcard-names', 'wildcard-names-per-endpoint'] as const)
      assert.ok(uses[bound] <= (this.#bounds[bound] ?? 0), bound)
  }

  /** Every entry, read from the tables one by one. */
  #entries(): ReadonlyMap<string, Seen> {
    const { names, mappings, entries } = this.#node.core.names
    const { prefixes } = this.#node.core.ipcache
    const all = new Map<string, Seen>()
    for (let entry = 1; entry <= entries.slots.high; entry++) {
      if (!entries.isUsed(entry)) continue
      const mapping = entries.mapping[entry] ?? 0
      const prefix = mappings.prefix[mapping] ?? 0
      const id = entries.endpoint[entry] ?? 0
      const endpoint = ENDPOINTS.find((name) => Number(this.#node.endpoint(name).id) === id) ?? ''
      const name = names.format(mappings.name[mapping] ?? 0).replace(/\.x$/, '')
      const address = formatAddress(4, prefixes.octets, prefix * 16)
      const connected = entries.connected[entry] === 1
      all.set(`${endpoint} ${name} ${address}`, { endpoint, name, connected })
    }
    return all
  }

  #connect(kind: 'open' | 'close', endpoint: string, address: string): void {
    const { connections } = this.#node.recorder
    const { id } = this.#node.endpoint(endpoint)
    const at = connections.findIndex(
      (each) => each.endpoint === id && formatAddress(4, each.peer.octets) === address,
    )
    if (kind === 'close' && at >= 0) connections.splice(at, 1)
    if (kind === 'open' && at < 0) connections.push({ endpoint: id, peer: prefixOf(address) })
    this.#node.clock.advance(5000)
    while (!this.#node.core.expiry.step(1)) this.#node.clock.advance(0)
    this.#node.core.committer.commit()
  }
}

function addressOf(n: number): string {
  return `192.0.2.${n + 1}`
}

test('NameCache evicts from the endpoint that learns, whichever table is full', () => {
  fc.assert(
    fc.property(bounds, steps, (given, all) => {
      const world = new World(given)
      for (const each of all) world.run(each)
    }),
    { numRuns: 200 },
  )
})
