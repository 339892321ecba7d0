// The bounds of names, compared with a naive evaluator that reads every entry: random answers, connections and time, one small bound at a
// time. After every answer the bound holds, and the evicted entry is the one that docs/spec/semantics 6 names: no connected one while an
// idle one exists, none of the answer itself, and none of another endpoint within its share.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { formatAddress } from '../../src/core/ip.ts'
import type { NameBound } from '../../src/names/eviction/eviction.ts'
import { mkEndpoint, mkPolicies, Node, prefixOf } from '../support/nodes/node.ts'

const ENDPOINTS = ['a', 'b', 'c'] as const
const NAMES = 8
const ADDRESSES = 8
const BOUND = 3
const TOTAL = 9
const EXACT = 'n0.x'

/** The bounds of rows for wildcards are in name-shares.test.ts. */
type Bound = Exclude<NameBound, 'wildcard-names' | 'wildcard-names-per-endpoint'>

interface Seen {
  readonly endpoint: number
  readonly name: string
  readonly address: string
  readonly due: number
  readonly connected: boolean
  readonly ended: number
  readonly asked: number
}

type Step =
  | {
      readonly kind: 'answer'
      readonly endpoint: number
      readonly name: number
      readonly addresses: readonly number[]
      readonly ttl: number
    }
  | { readonly kind: 'open' | 'close'; readonly endpoint: number; readonly address: number }
  | { readonly kind: 'wait'; readonly seconds: number }

const index = (count: number) => fc.integer({ min: 0, max: count - 1 })
const answer = fc.record({
  kind: fc.constant('answer' as const),
  endpoint: index(ENDPOINTS.length),
  name: index(NAMES),
  addresses: fc.array(index(ADDRESSES), { minLength: 1, maxLength: 3 }),
  ttl: fc.integer({ min: 0, max: 40 }),
})
const connection = fc.record({
  kind: fc.constantFrom('open' as const, 'close' as const),
  endpoint: index(ENDPOINTS.length),
  address: index(ADDRESSES),
})
const wait = fc.record({
  kind: fc.constant('wait' as const),
  seconds: fc.integer({ min: 1, max: 12 }),
})
const steps = fc.array(
  fc.oneof({ weight: 6, arbitrary: answer }, { weight: 2, arbitrary: connection }, wait),
  { minLength: 20, maxLength: 80 },
)

class World {
  readonly node: Node
  readonly bound: Bound

  constructor(bound: Bound) {
    this.bound = bound
    const bounds = bound === 'pairs' ? {} : { [bound]: BOUND }
    this.node = new Node({ pairs: bound === 'pairs' ? TOTAL : 256, bounds, graceSeconds: 5 })
    this.node.setEndpoints(ENDPOINTS.map((name, i) => mkEndpoint(name, [`10.0.0.${i + 1}`])))
    this.node.setPolicies(
      mkPolicies('egress: [ { toFQDNs: [ { matchPattern: "*.x" }, { matchName: n0.x } ] } ]'),
    )
  }

  /** Every entry, read from the tables one by one. */
  entries(): ReadonlyMap<string, Seen> {
    const { names, mappings, entries, rows } = this.node.core.names
    const { prefixes } = this.node.core.ipcache
    const all = new Map<string, Seen>()
    for (let entry = 1; entry <= entries.slots.high; entry++) {
      if (!entries.isUsed(entry)) continue
      const mapping = entries.mapping[entry] ?? 0
      const prefix = mappings.prefix[mapping] ?? 0
      const seen = {
        endpoint: entries.endpoint[entry] ?? 0,
        name: names.format(mappings.name[mapping] ?? 0),
        address: formatAddress(prefixes.family(prefix), prefixes.octets, prefix * 16),
        due: (entries.liveUntil[entry] ?? 0) + (entries.grace[entry] ?? 0),
        connected: entries.connected[entry] === 1,
        ended: entries.lastConnected[entry] ?? 0,
        asked: rows.uses.asked[entries.use[entry] ?? 0] ?? 0,
      }
      all.set(`${seen.endpoint} ${seen.name} ${seen.address}`, seen)
    }
    return all
  }

  run(step: Step): void {
    const { node } = this
    if (step.kind === 'answer') this.#answer(step)
    else if (step.kind === 'wait') this.#wait(step.seconds)
    else this.#connect(step.kind, this.#id(step.endpoint), addressOf(step.address))
    assert.deepEqual(node.differences(), [])
  }

  #answer(step: Extract<Step, { kind: 'answer' }>): void {
    const { node } = this
    node.clock.advance(1000)
    const endpoint = this.#id(step.endpoint)
    const name = `n${step.name}.x`
    const taught = [...new Set(step.addresses.map(addressOf))]
    const before = this.entries()
    const rows = node.learn(
      node.endpoint(ENDPOINTS[step.endpoint] ?? 'a').id,
      name,
      taught,
      step.ttl,
    )
    const after = this.entries()
    taught.forEach((address, i) => {
      const known = after.has(`${endpoint} ${name} ${address}`)
      assert.equal(known, rows[i] !== 0, 'an accepted lesson is an entry when the answer leaves')
    })
    this.#checkBound([...after.values()])
    const gone = [...before].filter(([key]) => !after.has(key)).map(([, seen]) => seen)
    for (const evicted of gone)
      this.#checkEvicted(evicted, [...before.values()], gone, endpoint, name)
  }

  #checkBound(all: readonly Seen[]): void {
    const scopes = {
      'addresses-per-name': (seen: Seen) => `${seen.endpoint} ${seen.name}`,
      'names-per-wildcard': (seen: Seen) => `${seen.endpoint}`,
      'names-per-address': (seen: Seen) => seen.address,
      'pairs-per-endpoint': (seen: Seen) => `${seen.endpoint}`,
      pairs: () => 'all',
    }
    const counted = new Map<string, Set<string>>()
    for (const seen of all) {
      if (this.bound === 'names-per-wildcard' && seen.name === EXACT) continue
      const scope = scopes[this.bound](seen)
      const byName = this.bound.startsWith('names')
      const item = byName ? seen.name : `${seen.endpoint} ${seen.name} ${seen.address}`
      counted.set(scope, (counted.get(scope) ?? new Set()).add(item))
    }
    const most = this.bound === 'pairs' ? TOTAL : BOUND
    for (const [scope, items] of counted) assert.ok(items.size <= most, `${this.bound} of ${scope}`)
  }

  #checkEvicted(
    evicted: Seen,
    before: readonly Seen[],
    gone: readonly Seen[],
    endpoint: number,
    name: string,
  ): void {
    const { bound } = this
    const shared = bound === 'pairs' || bound === 'names-per-address'
    if (!shared) assert.equal(evicted.endpoint, endpoint, 'no other endpoint loses an entry')
    // An answer renews its own addresses before an eviction. Compare with the entries that the answer did not touch.
    const others = before.filter(
      (seen) => !gone.includes(seen) && !(seen.endpoint === endpoint && seen.name === name),
    )
    if (bound === 'pairs') {
      const countOf = (id: number): number => before.filter((seen) => seen.endpoint === id).length
      const most = Math.max(...before.map((seen) => countOf(seen.endpoint)))
      assert.ok(countOf(evicted.endpoint) + 3 >= most, 'an endpoint with most entries, or nearly')
      assert.ok(
        evicted.endpoint === endpoint || countOf(evicted.endpoint) >= TOTAL / ENDPOINTS.length,
        'no endpoint within its share',
      )
    }
    if (bound === 'names-per-wildcard') {
      assert.notEqual(evicted.name, EXACT, 'exact names are exempt')
      const isBusy = (each: string): boolean =>
        before.some((seen) => seen.endpoint === endpoint && seen.name === each && seen.connected)
      for (const seen of others) {
        if (seen.endpoint !== endpoint || seen.name === EXACT) continue
        const [mine, its] = [isBusy(evicted.name), isBusy(seen.name)]
        assert.ok(mine === its ? evicted.asked <= seen.asked : !mine, 'idle and asked longest ago')
      }
    } else if (bound !== 'names-per-address') {
      for (const seen of others) {
        const sameScope =
          seen.endpoint === evicted.endpoint &&
          (bound !== 'addresses-per-name' || seen.name === evicted.name)
        if (sameScope)
          assert.ok(compare(evicted, seen) <= 0, `${bound}: the first in the order of eviction`)
      }
    }
  }

  #connect(kind: 'open' | 'close', endpoint: number, address: string): void {
    const { connections } = this.node.recorder
    const peer = prefixOf(address)
    const at = connections.findIndex(
      (each) =>
        Number(each.endpoint) === endpoint && formatAddress(4, each.peer.octets) === address,
    )
    if (kind === 'close' && at >= 0) connections.splice(at, 1)
    const owner = ENDPOINTS.find((each) => Number(this.node.endpoint(each).id) === endpoint) ?? 'a'
    if (kind === 'open' && at < 0)
      connections.push({ endpoint: this.node.endpoint(owner).id, peer })
  }

  #wait(seconds: number): void {
    const { node } = this
    node.clock.advance(seconds * 1000)
    while (!node.core.expiry.step(1)) node.clock.advance(0)
    node.core.committer.commit()
    const now = node.core.names.tick()
    for (const seen of this.entries().values())
      assert.ok(seen.due >= now || seen.connected, 'within its time')
  }

  #id(endpoint: number): number {
    return this.node.endpoint(ENDPOINTS[endpoint] ?? 'a').id
  }
}

function addressOf(n: number): string {
  return `192.0.2.${n + 1}`
}

/** Negative: `a` is evicted before `b`. */
function compare(a: Seen, b: Seen): number {
  if (a.connected !== b.connected) return a.connected ? 1 : -1
  if ((a.name === EXACT) !== (b.name === EXACT)) return a.name === EXACT ? 1 : -1
  if (!a.connected && a.ended !== b.ended) return a.ended - b.ended
  return !a.connected && a.ended !== 0 ? 0 : a.due - b.due
}

for (const bound of [
  'addresses-per-name',
  'names-per-wildcard',
  'names-per-address',
  'pairs-per-endpoint',
  'pairs',
] as const) {
  test(`NameCache holds ${bound} after every answer, and evicts in order`, () => {
    fc.assert(
      fc.property(steps, (all) => {
        const world = new World(bound)
        for (const step of all) world.run(step)
      }),
      { numRuns: 80 },
    )
  })
}
