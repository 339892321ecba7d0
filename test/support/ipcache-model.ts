// A node and, beside it, the list of facts that it should have in mind: random changes are made to both, `check` compares
// what the node says about every prefix, number, selection and count with a naive reading of the list.

import assert from 'node:assert/strict'
import { ConfigFacts } from '../../src/control/config-facts.ts'
import { endpointId } from '../../src/core/ids.ts'
import { OWNER_KINDS } from '../../src/ipcache/facts.ts'
import { validateIpCache } from '../../src/ipcache/validate.ts'
import type { Selector } from '../../src/identity/selector-cache.ts'
import { matches } from '../../src/policy/pattern.ts'
import { isNode, naiveLabels, naiveSelects, type NaiveFact } from './naive-ipcache.ts'
import { Node, patternOf, prefixOf, wireOf } from './node.ts'
import { Random } from './random.ts'

const NAMES = ['a.x', 'b.x', 'c.y', 'a.b.x', 'd.y']
const PATTERNS = ['a.x', '*.x', '**.x', '*.y', '*', 'b*.x']
const ADDRESSES = [
  ...[1, 2, 3, 6, 9].map((n) => `10.0.0.${n}/32`),
  ...['10.1.0.1/32', '192.0.2.1/32', '192.0.2.2/32'],
  ...[1, 2, 9].map((n) => `fd00::${n}/128`),
]
const PREFIXES = [
  ...['0.0.0.0/0', '10.0.0.0/8', '10.0.0.0/16', '10.0.0.0/29', '10.1.0.0/16', '192.0.2.0/24'],
  ...['::/0', 'fd00::/8', 'fd00::/125'],
]
const CIDR_SELECTORS = [
  '0.0.0.0/0',
  '10.0.0.0/8',
  '10.0.0.0/8 except 10.0.0.0/16',
  '10.0.0.0/29',
  'fd00::/8',
]
const VALUES = [['k8s:app=a', 'k8s:app=b'], ['k8s:zone=1'], ['external:x', 'external:x=2']]

export class IpCacheModel {
  readonly random: Random
  readonly node = new Node({ pairs: 256, configuredPrefixes: 128 })
  readonly #config = new ConfigFacts({ core: this.node.core })
  readonly #facts = new Map<string, NaiveFact>()
  readonly #pairs = new Map<
    string,
    { readonly endpoint: number; readonly name: string; readonly address: string }
  >()
  readonly #selectors = new Map<string, Selector>()
  readonly #textOf = new Map<number, string>()

  constructor(seed: number) {
    this.random = new Random(seed)
  }

  step(): void {
    const choice = this.random.below(100)
    if (choice < 40) this.#learn()
    else if (choice < 60) this.#forget(this.#pick(this.#pairs))
    else if (choice < 80) this.#changeFact()
    else if (choice < 92) this.#toggleSelector()
    else if (choice < 94) this.#refuseSome()
    else if (choice < 95) this.#waitLong()
    else this.#moveSome()
  }

  #learn(): void {
    const { random } = this
    const pair = {
      endpoint: 1 + random.below(3),
      name: random.pick(NAMES),
      address: random.pick(ADDRESSES),
    }
    this.node.learn(endpointId(pair.endpoint), pair.name, [pair.address])
    this.#pairs.set(`${pair.endpoint} ${pair.name} ${pair.address}`, pair)
  }

  #forget(key: string | undefined): void {
    const pair = key === undefined ? undefined : this.#pairs.get(key)
    if (pair === undefined || key === undefined) return
    const { names, mappings, pairs } = this.node.core.names
    let mapping = mappings.firstOfPrefix[this.node.rowOf(pair.address)] ?? 0
    while (names.format(mappings.name[mapping] ?? 0) !== pair.name)
      mapping = mappings.nextOfPrefix[mapping] ?? 0
    this.node.core.names.forget(pairs.find(mapping, pair.endpoint))
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
      const kind = random.pick([
        'node',
        'endpoint',
        'resource',
        'policy',
        'policy',
        'policy',
      ] as const)
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

  /** A slice of a transition, so that other changes fall in the middle of passes. */
  #moveSome(): void {
    this.node.core.rederive.step(1 + this.random.below(8))
    this.node.core.relabel.step(1 + this.random.below(8))
    if (this.random.oneIn(2)) this.node.core.committer.commit()
  }

  #pick<V>(map: ReadonlyMap<string, V>): string | undefined {
    return map.size === 0 ? undefined : [...map.keys()][this.random.below(map.size)]
  }

  /** Everything that is under way is done. */
  finish(): void {
    const { rederive, relabel, committer, ipcache } = this.node.core
    while (!rederive.step(50) || !relabel.step(50) || rederive.pending);
    this.node.recorder.refuse = () => false
    committer.retry()
    committer.commit()
    committer.commit()
    ipcache.freeRetired()
  }

  #allFacts(): readonly NaiveFact[] {
    const patterns = [...this.#selectors.keys()].filter((text) => text.startsWith('fqdn:'))
    const byOwner = new Map<string, NaiveFact>()
    for (const { name, address } of this.#pairs.values()) {
      const labels = patterns.filter((text) => matches(patternOf(text.slice(5)), wireOf(name)))
      if (labels.length > 0)
        byOwner.set(`${name} ${address}`, { prefix: address, kind: 'name', owner: name, labels })
    }
    return [...this.#facts.values(), ...byOwner.values()]
  }

  check(): void {
    const facts = this.#allFacts()
    const selected = new Map([...this.#selectors.keys()].map((text) => [text, new Set<number>()]))
    const numbers = new Map<string, number>()
    for (const prefix of new Set(facts.map((fact) => fact.prefix))) {
      const labels = naiveLabels(prefix, facts)
      const id = this.node.identityOf(prefix)
      assert.deepEqual(this.node.labelsOf(prefix), labels, prefix)
      if (isNode(prefix, facts)) {
        assert.equal(id, 1, `${prefix} is the host`)
        continue
      }
      const text = labels.join(' ')
      assert.equal(numbers.get(text) ?? id, id, `one number for ${text}`)
      assert.equal(this.#textOf.get(id) ?? text, text, `${id} never means another set`)
      numbers.set(text, id)
      this.#textOf.set(id, text)
      for (const [selector, ids] of selected) if (naiveSelects(selector, labels)) ids.add(id)
    }
    assert.equal(this.node.recorder.prefixes.size, new Set(facts.map((fact) => fact.prefix)).size)
    for (const [text, ids] of selected)
      assert.deepEqual(this.#selectors.get(text)?.identities, ids, text)
    assert.equal(this.node.core.allocator.inUse, numbers.size)
    assert.deepEqual(this.node.differences(), [])
    this.#checkNames()
    if (process.env['VALIDATE'] === '1') this.validate()
  }

  #checkNames(): void {
    const { names, mappings, pairs } = this.node.core.names
    const all = [...this.#pairs.values()]
    assert.equal(pairs.slots.used, all.length)
    assert.equal(
      mappings.slots.used,
      new Set(all.map(({ name, address }) => `${name} ${address}`)).size,
    )
    assert.equal(names.slots.used, new Set(all.map(({ name }) => name)).size)
  }

  validate(): void {
    const { ipcache, labelSets, allocator, names, selectorLabels } = this.node.core
    const sets = [...selectorLabels.heldSets()]
    const rows: number[] = []
    for (let name = 1; name <= names.names.slots.high; name++) {
      if (names.names.isUsed(name) && names.names.labels[name] !== 0)
        sets.push(names.names.labels[name] ?? 0)
    }
    for (let row = 1; row <= names.mappings.slots.high; row++) {
      if (names.mappings.isUsed(row)) rows.push(names.mappings.prefix[row] ?? 0)
    }
    validateIpCache(ipcache, labelSets, allocator, { labelSets: sets, rows })
  }

  /** Takes everything away. */
  clear(): void {
    for (const key of [...this.#pairs.keys()]) this.#forget(key)
    for (const text of [...this.#selectors.keys()]) this.#dropSelector(text)
    this.#facts.clear()
    this.#applyFacts()
    this.finish()
    this.check()
    this.#waitLong()
    this.node.core.labelSets.collect()
  }
}
