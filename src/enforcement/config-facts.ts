// ConfigFacts keeps the facts that configuration makes, by owner. It applies only the difference between the old and the new version of
// a source, so unchanged facts cause no work (invariant 8). It adds facts before it removes others, so that no prefix is without
// labels in between. `cidrFacts` returns the facts that a policy makes.
//
// Cost: `replace` looks at the facts of one owner, `apply` at all facts.

import { formatPrefix, type Prefix } from '../core/ip.ts'
import { OWNER_POLICY } from '../ipcache/facts.ts'
import type { Policy } from '../policy/rule.ts'
import type { CoreState } from './core-state.ts'
import { qualifiedName } from './rule-origins.ts'

/** The labels that an owner gives a prefix. */
export interface OwnedFact {
  readonly prefix: Prefix
  readonly labels: readonly string[]
}

/** A fact that configuration wants, with its owner. `kind`: one of the OWNER_ constants of ipcache/facts.ts. */
export interface WantedFact extends OwnedFact {
  readonly kind: number
  readonly owner: string
}

interface HeldFact {
  /** The prefix as text. */
  readonly prefix: string
  readonly fact: number
  readonly owner: number
}

export class ConfigFacts {
  readonly #core: CoreState
  /** The facts in force, by kind and owner. An owner has at most one fact about a prefix. */
  readonly #held = new Map<string, readonly HeldFact[]>()
  /** The label set of each list of labels. Many owners share one list. */
  readonly #sets = new WeakMap<readonly string[], number>()
  #refused = 0

  constructor(options: { readonly core: CoreState }) {
    this.#core = options.core
  }

  /** How many times a full table refused a fact. */
  get refused(): number {
    return this.#refused
  }

  /** Makes the facts of all owners equal to `wanted`. Adds facts first, then removes others. */
  apply(wanted: Iterable<WantedFact>): void {
    const gone = new Map(this.#held)
    const stale: HeldFact[] = []
    for (const { kind, owner, facts } of byOwner(wanted)) {
      const key = keyOf(kind, owner)
      stale.push(...this.#merge(kind, owner, facts).stale)
      this.#keepWanted(key, facts)
      gone.delete(key)
    }
    for (const [key, facts] of gone) {
      stale.push(...facts)
      this.#held.delete(key)
    }
    this.#remove(stale)
  }

  /** Makes the facts of one owner equal to `wanted`. Returns false if a full table refused at least one fact. */
  replace(kind: number, owner: string, wanted: Iterable<OwnedFact>): boolean {
    const facts = [...wanted]
    const [only] = facts
    const key = keyOf(kind, owner)
    if (only !== undefined && facts.length === 1 && !this.#held.has(key)) {
      return this.#addOnly(key, kind, owner, only)
    }
    const { stale, complete } = this.#merge(kind, owner, facts)
    this.#keepWanted(key, facts)
    this.#remove(stale)
    return complete
  }

  /** Adds or changes the wanted facts. Removes no facts. */
  add(wanted: Iterable<WantedFact>): void {
    for (const { kind, owner, facts } of byOwner(wanted)) this.#merge(kind, owner, facts)
  }

  /** Adds or changes the wanted facts of an owner. Returns the owner's other facts as `stale`. `complete`: the table had room for all. */
  #merge(
    kind: number,
    owner: string,
    wanted: readonly OwnedFact[],
  ): { readonly stale: readonly HeldFact[]; readonly complete: boolean } {
    const { ipcache } = this.#core
    const key = keyOf(kind, owner)
    const held = new Map((this.#held.get(key) ?? []).map((each) => [each.prefix, each]))
    const stale = new Map(held)
    let complete = true
    for (const { prefix, labels } of wanted) {
      const text = formatPrefix(prefix)
      const set = this.#setOf(labels)
      const known = held.get(text)
      stale.delete(text)
      if (known !== undefined) {
        ipcache.changeFact(known.fact, set)
        continue
      }
      const added = this.#addFact(prefix, text, kind, owner, set)
      if (added === undefined) complete = false
      else held.set(text, added)
    }
    if (held.size > 0) this.#held.set(key, [...held.values()])
    return { stale: [...stale.values()], complete }
  }

  /** Adds the only fact of a new owner. This is the common case: a hundred thousand such owners can come at a start. */
  #addOnly(key: string, kind: number, owner: string, { prefix, labels }: OwnedFact): boolean {
    const set = this.#setOf(labels)
    const added = this.#addFact(prefix, formatPrefix(prefix), kind, owner, set)
    if (added !== undefined) this.#held.set(key, [added])
    return added !== undefined
  }

  #setOf(labels: readonly string[]): number {
    const { labelSets } = this.#core
    const known = this.#sets.get(labels)
    if (known !== undefined && labelSets.has(known)) return known
    const set = labelSets.intern(labels)
    this.#sets.set(labels, set)
    return set
  }

  #addFact(
    prefix: Prefix,
    text: string,
    kind: number,
    ownerText: string,
    set: number,
  ): HeldFact | undefined {
    const { ipcache, owners } = this.#core
    const owner = owners.hold(ownerText)
    const fact = ipcache.addPrefixFact(prefix, kind, owner, set)
    if (fact !== 0) return { prefix: text, fact, owner }
    this.#refused++
    owners.release(owner)
    return undefined
  }

  /** Forgets the facts of an owner that are not wanted. The caller removes these facts from the IPCache. */
  #keepWanted(key: string, wanted: readonly OwnedFact[]): void {
    const texts = new Set(wanted.map(({ prefix }) => formatPrefix(prefix)))
    const kept = (this.#held.get(key) ?? []).filter(({ prefix }) => texts.has(prefix))
    if (kept.length === 0) this.#held.delete(key)
    else this.#held.set(key, kept)
  }

  #remove(facts: readonly HeldFact[]): void {
    const { ipcache, owners } = this.#core
    for (const { fact, owner } of facts) {
      ipcache.removeFact(fact)
      owners.release(owner)
    }
  }
}

interface Owned {
  readonly kind: number
  readonly owner: string
  readonly facts: OwnedFact[]
}

function byOwner(wanted: Iterable<WantedFact>): Iterable<Owned> {
  const owners = new Map<string, Owned>()
  for (const fact of wanted) {
    const { kind, owner } = fact
    const key = keyOf(kind, owner)
    const known = owners.get(key)
    if (known === undefined) owners.set(key, { kind, owner, facts: [fact] })
    else known.facts.push(fact)
  }
  return owners.values()
}

function keyOf(kind: number, owner: string): string {
  return `${kind} ${owner}`
}

/** Returns one fact for every prefix that a rule of the policy names, exceptions included (docs/spec/semantics 3 "CIDR fact"). */
export function cidrFacts(policy: Policy): readonly WantedFact[] {
  const facts: WantedFact[] = []
  for (const { peers } of policy.rules) {
    if (peers.kind !== 'selectors') continue
    for (const peer of peers.selectors) {
      if (peer.kind !== 'cidr') continue
      for (const prefix of [peer.prefix, ...peer.except]) facts.push(factOf(policy, prefix))
    }
  }
  return facts
}

function factOf(policy: Policy, prefix: Prefix): WantedFact {
  const labels = [`cidr:${formatPrefix(prefix)}`]
  return { prefix, kind: OWNER_POLICY, owner: qualifiedName(policy), labels }
}
