import assert from 'node:assert/strict'
import { test } from 'node:test'
import { endpointId, identity, type Identity } from '../../src/core/ids.ts'
import { LabelSets } from '../../src/core/labels.ts'
import { ANY_PROTOCOL, EVERYTHING, TCP, type PortRange } from '../../src/core/protocol.ts'
import type { CommitFailure, PolicyEntry } from '../../src/datapath/entries.ts'
import type { EndpointRules } from '../../src/datapath/flat-rules.ts'
import { PolicyMaps } from '../../src/datapath/policy-maps.ts'
import { SelectorCache, type Selector } from '../../src/identity/selector-cache.ts'
import type { Action } from '../../src/policy/compile/flatten.ts'
import { patternOf } from '../support/nodes/node.ts'
import { keyOfPolicy } from '../support/models/recorder.ts'

const E1 = endpointId(1)
const E2 = endpointId(2)
const WORLD = identity(9)

class Bench {
  readonly sets = new LabelSets()
  readonly selectors = new SelectorCache({ labelSets: this.sets })
  readonly maps: PolicyMaps
  readonly spare = new Set<Identity>()
  readonly #sets = new Map<Identity, number>()
  #next = 100

  constructor(entriesMax = 1000) {
    const { selectors } = this
    this.maps = new PolicyMaps({
      selectors,
      labelSets: this.sets,
      setOf: (id) => this.#sets.get(id),
      entriesMax,
      isSpare: (id) => this.spare.has(id),
      ruleOf: (origins) => origins[0] ?? 0,
    })
  }

  selector(text: string): Selector {
    return this.selectors.acquire({ kind: 'fqdn', pattern: patternOf(text) }).selector
  }

  /** A new identity with the labels of these selectors. */
  identity(texts: readonly string[], spare = false): { id: Identity; complete: boolean } {
    const id = identity(this.#next++)
    const set = this.sets.intern(texts.map((text) => `fqdn:${text}`))
    this.sets.retain(set)
    this.#sets.set(id, set)
    if (spare) this.spare.add(id)
    const selectors = this.selectors.addIdentity(id, set)
    return { id, complete: this.maps.addIdentity(id, selectors) }
  }

  /** The writes of the next commit, such as `1 100 6 443/16 allow`, and then its removals. */
  take(): readonly (readonly string[])[] {
    const { upserts, removals } = this.commit(false)
    return [upserts.map(textOf), removals.map(keyOfPolicy)]
  }

  /** Commits all changes. The datapath accepts or refuses each. */
  commit(isRefused: boolean): Pick<PolicyMaps['changes'], 'upserts' | 'removals'> {
    const { changes } = this.maps
    changes.gather()
    const { upserts, removals } = changes
    const refuse = (list: readonly unknown[], action: CommitFailure['action']): CommitFailure[] =>
      list.map((_, index) => ({ section: 'policy', action, index, code: 'ENOSPC' }))
    const refused = [...refuse(upserts, 'upsert'), ...refuse(removals, 'remove')]
    changes.settle(isRefused ? refused : [])
    return { upserts, removals }
  }
}

function textOf(entry: PolicyEntry): string {
  return `${keyOfPolicy(entry)} ${entry.verdict}`
}

function cover(action: Action, range: PortRange = EVERYTHING, origin = 1) {
  return { action, range, origin }
}

function mkRules(
  selectors: readonly (readonly [Selector, ...ReturnType<typeof cover>[]])[],
  levels: readonly (readonly [Identity, ...ReturnType<typeof cover>[]])[] = [],
): EndpointRules {
  return {
    selectors: new Map(selectors.map(([selector, ...coverages]) => [selector, coverages])),
    levels: new Map(levels.map(([level, ...coverages]) => [level, coverages])),
    complete: false,
  }
}

const HTTPS: PortRange = { protocol: TCP, low: 443, high: 443 }

test('PolicyMaps writes entries of identities that selectors select, of classes and of any peer', () => {
  const bench = new Bench()
  const a = bench.selector('a')
  const { id } = bench.identity(['a'])
  bench.maps.setRules(E1, mkRules([[a, cover('allow', HTTPS)]], [[WORLD, cover('deny')]]))
  assert.deepEqual(bench.take(), [['1 9 0 0/0 deny', `1 ${id} 6 443/16 allow`], []], 'denies first')
  const later = bench.identity(['a', 'b'])
  assert.deepEqual(bench.take(), [[`1 ${later.id} 6 443/16 allow`], []])
  bench.maps.removeIdentity(id, bench.selectors.selectorsOf(id))
  assert.deepEqual(bench.take(), [[], [`1 ${id} 6 443/16`]])
  bench.maps.removeEndpoint(E1)
  assert.deepEqual(
    bench.take(),
    [[], [`1 ${later.id} 6 443/16`, '1 9 0 0/0']],
    'allows are removed first',
  )
  assert.deepEqual([...bench.maps.entries()], [])
})

test('PolicyMaps.setRules with equal rules changes nothing (invariant 8)', () => {
  const bench = new Bench()
  const a = bench.selector('a')
  bench.identity(['a'])
  const rules = () => mkRules([[a, cover('allow', HTTPS)]], [[WORLD, cover('allow')]])
  bench.maps.setRules(E1, rules())
  bench.take()
  bench.maps.setRules(E1, rules())
  assert.deepEqual(bench.take(), [[], []])
})

test('PolicyMaps unites the entries of several selectors about one identity, deny over allow', () => {
  const bench = new Bench()
  const [a, b] = [bench.selector('a'), bench.selector('b')]
  bench.maps.setRules(
    E1,
    mkRules([
      [a, cover('allow')],
      [b, cover('deny', HTTPS)],
    ]),
  )
  const { id } = bench.identity(['a', 'b'])
  assert.deepEqual(bench.take(), [[`1 ${id} 6 443/16 deny`, `1 ${id} 0 0/0 allow`], []])
})

test('PolicyMaps: the last change of a key wins, however often it changes before a commit', () => {
  const allow = [cover('allow', HTTPS)] as const
  const deny = [cover('deny', HTTPS)] as const
  const rows: readonly (readonly [
    steps: readonly (readonly ReturnType<typeof cover>[])[],
    writes: readonly string[],
    removals: readonly string[],
    reason: string,
  ])[] = [
    [[allow, deny], ['1 9 6 443/16 deny'], [], 'allow, then deny'],
    [[deny, allow], ['1 9 6 443/16 allow'], [], 'deny, then allow'],
    [[allow, []], [], ['1 9 6 443/16'], 'allow, then nothing: never opened at all'],
    [[allow, [], deny], ['1 9 6 443/16 deny'], [], 'allow, nothing, deny'],
  ]
  for (const [steps, writes, removals, reason] of rows) {
    const bench = new Bench()
    for (const step of steps) bench.maps.setRules(E1, mkRules([], [[WORLD, ...step]]))
    assert.deepEqual(bench.take(), [writes, removals], reason)
  }
})

test('PolicyChanges tries refused entries again unless they were decided again', () => {
  const bench = new Bench()
  const { changes } = bench.maps
  bench.maps.setRules(E1, mkRules([], [[WORLD, cover('allow', HTTPS)]]))
  bench.commit(true)
  assert.deepEqual(
    [changes.refused, changes.isComplete(WORLD), changes.isPending(E1, WORLD)],
    [1, false, false],
  )
  assert.deepEqual(bench.take(), [['1 9 6 443/16 allow'], []], 'once more')
  assert.deepEqual(
    [changes.refused, changes.isComplete(WORLD), changes.hasChanges],
    [0, true, false],
  )
  bench.maps.setRules(E1, mkRules([], []))
  bench.maps.setRules(E1, mkRules([], [[WORLD, cover('allow', HTTPS)]]))
  bench.commit(true)
  bench.maps.setRules(E1, mkRules([], []))
  assert.deepEqual(bench.take(), [[], ['1 9 6 443/16']], 'not wanted any more')
  bench.maps.setRules(E1, mkRules([], [[WORLD, cover('allow', HTTPS)]]))
  bench.take()
  bench.maps.setRules(E1, mkRules([], []))
  bench.commit(true)
  bench.maps.setRules(E1, mkRules([], [[WORLD, cover('deny', HTTPS)]]))
  assert.deepEqual(bench.take(), [['1 9 6 443/16 deny'], []], 'wanted again: not removed')
})

test('PolicyMaps counts an identity that finds no room, and adds it in a later call', () => {
  const bench = new Bench(2)
  const a = bench.selector('a')
  bench.maps.setRules(E1, mkRules([[a, cover('allow')]]))
  assert.equal(bench.identity(['a']).complete, true)
  assert.equal(bench.identity(['a', 'b']).complete, true)
  const third = bench.identity(['a', 'c'])
  assert.deepEqual([third.complete, bench.maps.overflows, bench.maps.sizeOf(E1)], [false, 1, 2])
  const first = identity(100)
  bench.maps.removeIdentity(first, bench.selectors.selectorsOf(first))
  const again = bench.maps.addIdentity(third.id, bench.selectors.selectorsOf(third.id))
  assert.deepEqual([again, bench.maps.sizeOf(E1)], [true, 2])
  const once = bench.maps.addIdentity(third.id, bench.selectors.selectorsOf(third.id))
  assert.deepEqual([once, bench.maps.sizeOf(E1)], [true, 2], 'an existing entry needs no more room')
})

test('PolicyMaps leaves spare identities out of a map at half its size until an address needs them', () => {
  const bench = new Bench(4)
  const [a, b] = [bench.selector('a'), bench.selector('b')]
  bench.maps.setRules(E1, mkRules([[a, cover('allow')]]))
  bench.maps.setRules(E2, mkRules([[b, cover('allow')]]))
  const spares = ['1', '2', '3'].map((text) => bench.identity(['a', 'b', text], true).id)
  assert.deepEqual([bench.maps.sizeOf(E1), bench.maps.sizeOf(E2)], [2, 2])
  bench.take()
  const [, , third = identity(0)] = spares
  bench.spare.delete(third)
  bench.maps.need(third)
  assert.deepEqual(bench.take(), [[`1 ${third} 0 0/0 allow`, `2 ${third} 0 0/0 allow`], []])
  bench.maps.need(third)
  assert.deepEqual(bench.take(), [[], []], 'once')
})

test('PolicyMaps.entries lists all wanted entries', () => {
  const bench = new Bench()
  const a = bench.selector('a')
  const { id } = bench.identity(['a'])
  bench.maps.setRules(E1, mkRules([[a, cover('allow', { protocol: TCP, low: 80, high: 83 }, 7)]]))
  assert.deepEqual(
    [...bench.maps.entries()],
    [
      {
        endpoint: 1,
        identity: id,
        protocol: TCP,
        port: 80,
        portBits: 14,
        verdict: 'allow',
        rule: 7,
      },
    ],
  )
  assert.equal(ANY_PROTOCOL, 0)
})
