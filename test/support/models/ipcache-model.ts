// A node, and beside it the list of facts that it should hold. The model makes random changes to both. `check` compares every prefix,
// number, selection and count of the node with a naive reading of the list. With even seeds, each endpoint keeps to itself what it
// learned (`learning: endpoint`). With all seeds, some endpoints get names and lose them.

import assert from 'node:assert/strict'
import { ConfigFacts } from '../../../src/enforcement/config-facts.ts'
import { endpointId } from '../../../src/core/ids.ts'
import { OWNER_KINDS } from '../../../src/ipcache/facts.ts'
import type { Selector } from '../../../src/identity/selector-cache.ts'
import { matches } from '../../../src/policy/match/pattern.ts'
import { checkNameCounts } from './core-counts.ts'
import {
  ENDPOINTS,
  NAMES,
  PATTERNS,
  ADDRESSES,
  FACT_KINDS,
  PREFIXES,
  CIDR_SELECTORS,
  VALUES,
} from './ipcache-inputs.ts'
import { isNode, naiveLabels, naiveSelects, type NaiveFact } from './naive-ipcache.ts'
import { Node, patternOf, prefixOf, wireOf } from '../nodes/node.ts'
import { Random } from './random.ts'
import type { SlowRecorder } from './slow-recorder.ts'
import { validateCore } from './validate-core.ts'

/** The numbers and sets that a check has found so far. */
interface Seen {
  entries: number
  readonly selected: ReadonlyMap<string, Set<number>>
  readonly numbers: Map<string, number>
}

export class IpCacheModel {
  readonly random: Random
  readonly node: Node
  readonly #slow: SlowRecorder | undefined
  readonly #learning: 'node' | 'endpoint'
  readonly #config: ConfigFacts
  readonly #facts = new Map<string, NaiveFact>()
  readonly #pairs = new Map<
    string,
    { readonly endpoint: number; readonly name: string; readonly address: string }
  >()
  readonly #selectors = new Map<string, Selector>()
  readonly #named = new Set<number>()
  readonly #textOf = new Map<number, string>()

  /** With `slow`, commits end at random times, while other things change. */
  constructor(seed: number, slow?: SlowRecorder) {
    this.random = new Random(seed)
    this.#learning = seed % 2 === 0 ? 'endpoint' : 'node'
    this.#slow = slow
    const bounds = { pairs: 256, configuredPrefixes: 128 }
    this.node = new Node({ ...bounds, learning: this.#learning, recorder: slow })
    this.#config = new ConfigFacts({ core: this.node.core })
  }

  step(): void {
    if (this.#slow !== undefined && this.random.oneIn(4)) this.#slow.end()
    const choice = this.random.below(100)
    if (choice < 40) this.#learn()
    else if (choice < 60) this.#forget(this.#pick(this.#pairs))
    else if (choice < 80) this.#changeFact()
    else if (choice < 90) this.#toggleSelector()
    else if (choice < 92) this.#toggleNamed()
    else if (choice < 94) this.#refuseSome()
    else if (choice < 95) this.#waitLong()
    else this.#moveSome()
  }

  #learn(): void {
    const { random } = this
    const pair = {
      endpoint: random.pick(ENDPOINTS),
      name: random.pick(NAMES),
      address: random.pick(ADDRESSES),
    }
    this.node.learn(endpointId(pair.endpoint), pair.name, [pair.address])
    this.#pairs.set(`${pair.endpoint} ${pair.name} ${pair.address}`, pair)
  }

  #forget(key: string | undefined): void {
    const pair = key === undefined ? undefined : this.#pairs.get(key)
    if (pair === undefined || key === undefined) return
    const { names, mappings, entries } = this.node.core.names
    let mapping = mappings.firstOfPrefix[this.node.rowOf(pair.address)] ?? 0
    while (names.format(mappings.name[mapping] ?? 0) !== pair.name)
      mapping = mappings.nextOfPrefix[mapping] ?? 0
    this.node.core.names.forget(entries.find(mapping, pair.endpoint))
    this.#pairs.delete(key)
  }

  #changeFact(): void {
    const { random } = this
    const old = random.oneIn(2) ? this.#pick(this.#facts) : undefined
    if (old !== undefined && random.oneIn(2)) {
      this.#facts.delete(old)
    } else if (old !== undefined) {
      const fact = this.#facts.get(old)
      if (fact !== undefined && fact.kind !== 'policy')
        this.#facts.set(old, { ...fact, labels: this.#labels() })
    } else {
      const kind = random.pick(FACT_KINDS)
      const prefix = random.pick(kind === 'node' || random.oneIn(2) ? ADDRESSES : PREFIXES)
      const owner = `${kind}-${random.below(3)}`
      const labels =
        kind === 'policy'
          ? [`cidr:${prefix}`]
          : kind === 'node'
            ? ['reserved:host']
            : this.#labels()
      this.#facts.set(`${kind} ${owner} ${prefix}`, { prefix, kind, owner, labels })
    }
    this.#applyFacts()
  }

  #labels(): readonly string[] {
    return VALUES.filter(() => this.random.oneIn(2)).map((values) => this.random.pick(values))
  }

  #applyFacts(): void {
    this.#config.apply(
      [...this.#facts.values()].map(({ prefix, kind, owner, labels }) => ({
        prefix: prefixOf(prefix),
        kind: OWNER_KINDS.indexOf(kind),
        owner,
        labels,
      })),
    )
  }

  #toggleSelector(): void {
    const isFqdn = this.random.oneIn(2)
    const text = isFqdn ? `fqdn:${this.random.pick(PATTERNS)}` : this.random.pick(CIDR_SELECTORS)
    if (this.#selectors.has(text)) this.#dropSelector(text)
    else this.#addSelector(text)
  }

  #toggleNamed(): void {
    const endpoint = this.random.pick(ENDPOINTS)
    if (!this.#named.delete(endpoint)) this.#named.add(endpoint)
    this.node.core.names.setNamed(endpointId(endpoint), this.#named.has(endpoint))
  }

  #addSelector(text: string): void {
    const [prefix = '', except] = text.split(' except ')
    const { selectors, selectorLabels } = this.node.core
    const { selector } = text.startsWith('fqdn:')
      ? selectors.acquire({ kind: 'fqdn', pattern: patternOf(text.slice(5)) })
      : selectors.acquire({
          kind: 'cidr',
          prefix: prefixOf(prefix),
          except: except === undefined ? [] : [prefixOf(except)],
        })
    if (selector.kind === 'fqdn') selectorLabels.ensure(selector)
    this.#selectors.set(text, selector)
  }

  #dropSelector(text: string): void {
    const selector = this.#selectors.get(text)
    if (selector === undefined) return
    if (selector.kind === 'fqdn') this.node.core.selectorLabels.drop(selector)
    this.node.core.selectors.release(selector)
    this.#selectors.delete(text)
  }

  /** The datapath refuses some writes until the next check. */
  #refuseSome(): void {
    const refusals = new Random(this.random.next())
    this.node.recorder.refuse = () => refusals.oneIn(3)
  }

  #waitLong(): void {
    this.node.clock.advance(700_000)
    this.node.core.allocator.sweep()
  }

  /** Runs a slice of a transition, so that other changes happen during passes. */
  #moveSome(): void {
    this.node.core.rederive.step(1 + this.random.below(8))
    this.node.core.relabel.step(1 + this.random.below(8))
    if (this.random.oneIn(2)) this.node.core.committer.commit()
  }

  #pick<V>(map: ReadonlyMap<string, V>): string | undefined {
    return map.size === 0 ? undefined : [...map.keys()][this.random.below(map.size)]
  }

  /** Finishes every pass and commit under way. */
  finish(): void {
    const { rederive, relabel, committer, ipcache } = this.node.core
    while (!rederive.step(50) || !relabel.step(50) || rederive.pending);
    this.node.recorder.refuse = () => false
    this.#slow?.drain()
    committer.retry()
    committer.commit()
    this.#slow?.drain()
    committer.commit()
    this.#slow?.drain()
    ipcache.freeRetired()
  }

  #labelsOfName(name: string): readonly string[] {
    const patterns = [...this.#selectors.keys()].filter((text) => text.startsWith('fqdn:'))
    return patterns.filter((text) => matches(patternOf(text.slice(5)), wireOf(name)))
  }

  /** Facts of the node's scope. */
  #nodeFacts(): readonly NaiveFact[] {
    const byOwner = new Map<string, NaiveFact>()
    for (const { name, address } of this.#learning === 'node' ? this.#pairs.values() : []) {
      const labels = this.#labelsOfName(name)
      if (labels.length > 0)
        byOwner.set(`${name} ${address}`, { prefix: address, kind: 'name', owner: name, labels })
    }
    return [...this.#facts.values(), ...byOwner.values()]
  }

  /** Facts in an endpoint's own scope. */
  #ownFacts(endpoint: number): readonly NaiveFact[] {
    const named = this.#named.has(endpoint) ? ['reserved:named'] : []
    return [...this.#pairs.values()]
      .filter((pair) => pair.endpoint === endpoint)
      .map(({ name, address }) => {
        const learned = this.#learning === 'endpoint' ? this.#labelsOfName(name) : []
        return {
          prefix: address,
          kind: 'name' as const,
          owner: name,
          labels: [...learned, ...named],
        }
      })
      .filter(({ labels }) => labels.length > 0)
  }

  check(): void {
    const facts = this.#nodeFacts()
    const seen: Seen = {
      entries: 0,
      selected: new Map([...this.#selectors.keys()].map((text) => [text, new Set<number>()])),
      numbers: new Map<string, number>(),
    }
    this.#checkPrefixes(seen, facts, facts, 0)
    for (const endpoint of ENDPOINTS) {
      const own = this.#ownFacts(endpoint)
      this.#checkPrefixes(seen, own, [...facts, ...own], endpoint)
    }
    const { entries, selected, numbers } = seen
    assert.equal(this.node.recorder.prefixes.size, entries)
    for (const [text, ids] of selected)
      assert.deepEqual(new Set(this.#selectors.get(text)?.identities), ids, text)
    assert.equal(this.node.core.allocator.inUse, numbers.size)
    assert.deepEqual(this.node.differences(), [])
    checkNameCounts(this.node, [...this.#pairs.values()])
    if (process.env['VALIDATE'] === '1') validateCore(this.node.core)
  }

  /** Compares the prefixes of some facts with the prefixes that all facts of a scope make. */
  #checkPrefixes(
    seen: Seen,
    some: readonly NaiveFact[],
    all: readonly NaiveFact[],
    scope: number,
  ): void {
    for (const prefix of new Set(some.map((fact) => fact.prefix))) {
      const labels = naiveLabels(prefix, all)
      const id = this.node.identityOf(prefix, scope)
      const place = `${prefix} in scope ${scope}`
      seen.entries++
      assert.deepEqual(this.node.labelsOf(prefix, scope), labels, place)
      if (isNode(prefix, all)) {
        assert.equal(id, 1, `${place} is the host`)
        continue
      }
      const text = labels.join(' ')
      assert.equal(seen.numbers.get(text) ?? id, id, `one number for ${text}`)
      assert.equal(this.#textOf.get(id) ?? text, text, `${id} never means another set`)
      seen.numbers.set(text, id)
      this.#textOf.set(id, text)
      for (const [selector, ids] of seen.selected) if (naiveSelects(selector, labels)) ids.add(id)
    }
  }

  /** Removes all facts, selectors and names. */
  clear(): void {
    for (const key of [...this.#pairs.keys()]) this.#forget(key)
    for (const text of [...this.#selectors.keys()]) this.#dropSelector(text)
    while (this.#named.size > 0) this.#toggleNamed()
    this.#facts.clear()
    this.#applyFacts()
    this.finish()
    this.check()
    this.#waitLong()
    this.node.core.labelSets.collect()
  }
}
