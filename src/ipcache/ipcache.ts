// The IPCache turns facts into the wanted identity of every prefix. The facts come from names (answers, expiry, relabelling) and from
// configuration (CIDRs of policy, addresses of endpoints and of the node). The committer reads the identities. Two things always hold.
// The labels of a prefix are derive(union of its facts, labels of its container). A row holds one reference to the identity that it
// wants, and one to the identity that the datapath confirmed.
// A fact about one address in the node's scope changes only the rows of this address: the node's row, and the rows in endpoints' own
// scopes. A fact about a shorter prefix can change every row inside the prefix. `Rederive` then derives these rows in bounded slices.

import { identity, type EndpointId, type Identity } from '../core/ids.ts'
import { widthOf, type Family, type Prefix } from '../core/ip.ts'
import { EMPTY_SET, type LabelSets } from '../core/labels.ts'
import type { Allocator } from '../identity/allocator.ts'
import { HOST } from '../identity/reserved.ts'
import { classOf, Deriver, mergeFacts } from './derive.ts'
import { DegradedRows } from './degraded-rows.ts'
import { Facts, OWNER_NAME } from './facts.ts'
import { PrefixTable } from './prefix-table.ts'

/** The datapath's entry for the row may differ from the wanted one. */
export const ROW_CHANGED = 1
/** The datapath refused the row's entry. */
export const ROW_REFUSED = 2
/** The row's identity has fewer labels than the row. */
export const ROW_DEGRADED = 4
/** A commit gave the row to the datapath, which has not confirmed or refused the row yet. */
export const ROW_UNDER_WAY = 8

const ROW_KEPT = ROW_CHANGED | ROW_UNDER_WAY

export class IpCache {
  readonly prefixes: PrefixTable
  readonly facts: Facts
  readonly deriver: Deriver
  readonly #sets: LabelSets
  readonly #allocator: Allocator
  readonly #ownerText: (kind: number, owner: number) => string
  /** Rows whose entry in the datapath may differ from the wanted one. */
  #changed: number[] = []
  /** Rows of shorter prefixes without users. They stay until no row inside can have them as its `parent`. */
  readonly #retired = new Set<number>()
  readonly degraded = new DegradedRows()
  /** The endpoint whose answer is being learned, 0 for none. New identities are counted for this endpoint. */
  asker = 0
  /** Containers whose labels changed since the last pass. */
  #changedContainers: number[] = []
  #conflicts = 0

  constructor(options: {
    readonly labelSets: LabelSets
    readonly allocator: Allocator
    /** The most rows of the node, and the most facts about them. */
    readonly capacity: number
    /** The most rows in endpoints' own scopes, and the most facts about them. */
    readonly scopedCapacity: number
    /** Returns the text of an owner. If two owners of one kind give the same key different values, the smaller text wins. */
    readonly ownerText: (kind: number, owner: number) => string
    /** `policies.cidr-matches-endpoints`. Default: false. */
    readonly knownHaveCidr?: boolean
  }) {
    this.#sets = options.labelSets
    this.#allocator = options.allocator
    this.#ownerText = options.ownerText
    this.prefixes = new PrefixTable(options)
    this.facts = new Facts({
      capacity: options.capacity + options.scopedCapacity,
      firstOfPrefix: this.prefixes.firstFact,
    })
    this.deriver = new Deriver(options)
  }

  /** How often two owners gave the same key of one prefix different values. */
  get conflicts(): number {
    return this.#conflicts
  }

  /**
   * Returns the node's row of the address at `offset`, added when missing, or 0 when the table is full. The row is not freed before the
   * caller calls `dropRow`.
   */
  holdAddress(family: Family, octets: Uint8Array, offset: number): number {
    const row = this.prefixes.findOrAdd(family, octets, offset, widthOf(family))
    if (row !== 0) this.prefixes.users[row]!++
    return row
  }

  /** Gives back a row from `holdAddress`. Frees the row if nothing else uses it. */
  dropRow(row: number): void {
    this.prefixes.users[row]!--
    this.freeIfIdle(row)
  }

  /** Adds a fact to a prefix. Returns the row of the fact, or 0 when a table is full and nothing was changed. */
  addPrefixFact(prefix: Prefix, kind: number, owner: number, set: number): number {
    const row = this.prefixes.findOrAdd(prefix.family, prefix.octets, 0, prefix.length)
    return row === 0 ? 0 : this.addFact(row, kind, owner, set)
  }

  /** Adds a name's fact to an endpoint's own view of an address. `base`: the node's row of the address. Returns like `addPrefixFact`. */
  addScopedFact(scope: EndpointId, base: number, owner: number, set: number): number {
    const row = this.prefixes.findOrAddScoped(scope, base)
    return row === 0 ? 0 : this.addFact(row, OWNER_NAME, owner, set)
  }

  /** Adds a fact to a prefix's row. Returns the row of the fact, or 0 when the table is full and nothing was changed. */
  addFact(row: number, kind: number, owner: number, set: number): number {
    const { prefixes, facts } = this
    const first = prefixes.firstFact[row]!
    const fact = facts.add(row, kind, owner, set)
    if (fact === 0) {
      this.freeIfIdle(row)
      return 0
    }
    this.#sets.retain(set)
    prefixes.users[row]!++
    if (first === 0 && prefixes.canContain(row)) prefixes.countContainer(row, 1)
    const simple = kind === OWNER_NAME && first !== 0
    if (simple && this.#sets.union(prefixes.own[row]!, set) === prefixes.own[row]) return fact
    this.#recompute(row)
    return fact
  }

  /** Gives a fact other labels. */
  changeFact(fact: number, set: number): void {
    const old = this.facts.set[fact]!
    if (old === set) return
    this.#sets.retain(set)
    this.facts.set[fact] = set
    this.#sets.release(old)
    this.#recompute(this.facts.prefix[fact]!)
  }

  removeFact(fact: number): void {
    const { prefixes, facts } = this
    const row = facts.prefix[fact]!
    const set = facts.set[fact]!
    facts.remove(fact)
    const first = prefixes.firstFact[row]!
    prefixes.users[row]!--
    if (first === 0 && prefixes.canContain(row)) prefixes.countContainer(row, -1)
    if (first === 0 || !this.#hasOtherFactLike(first, facts.kind[fact]!, set)) this.#recompute(row)
    this.#sets.release(set)
    this.freeIfIdle(row)
  }

  /** Finds a row's container again and derives the row's labels. `Rederive` calls this for rows inside changed containers. */
  rederiveRow(row: number): void {
    this.prefixes.parent[row] = this.prefixes.findContainer(row)
    if (this.prefixes.firstFact[row] !== 0) this.#derive(row)
  }

  /** Returns the containers that changed since the last call. The caller derives the rows inside them again. */
  takeChangedContainers(): readonly number[] {
    const changed = this.#changedContainers
    if (changed.length > 0) this.#changedContainers = []
    return changed
  }

  /** How many changes of containers `takeChangedContainers` would return. A container that changed twice is counted twice. */
  get changedContainers(): number {
    return this.#changedContainers.length
  }

  get hasContainersChanged(): boolean {
    return this.#changedContainers.length > 0
  }

  /** Drops all changes of containers after the first `count`. `Rederive` made them, and derives the rows inside in the same pass. */
  keepChangedContainers(count: number): void {
    this.#changedContainers.length = count
  }

  /**
   * Returns the rows whose wanted entry may differ from the datapath's, each row once. The caller brings every row to the datapath, and
   * then clears the flag ROW_CHANGED of the row. A row with this flag is not freed.
   */
  takeChanged(): readonly number[] {
    const changed = this.#changed
    if (changed.length === 0) return changed
    this.#changed = []
    return changed
  }

  get changedCount(): number {
    return this.#changed.length
  }

  /** Checks up to `limit` degraded rows. A row gets the identity of its whole label set if a number is free for the set. */
  heal(limit: number): void {
    this.degraded.turn(limit, (row, asker) => {
      const set = this.prefixes.derived[row]!
      if (!this.#allocator.canAcquire(set, asker)) return
      this.#want(row, set, identity(this.prefixes.addressClass[row]!), asker)
    })
  }

  markChanged(row: number): void {
    const { flags } = this.prefixes
    if ((flags[row]! & ROW_CHANGED) !== 0) return
    flags[row]! |= ROW_CHANGED
    this.#changed.push(row)
  }

  /** Frees a row if it has no users and no entry in the datapath. A row of a shorter prefix is freed later, by `freeRetired`. */
  freeIfIdle(row: number): void {
    const { prefixes } = this
    if (prefixes.users[row] !== 0 || prefixes.applied[row] !== 0) return
    if ((prefixes.flags[row]! & ROW_KEPT) !== 0) return
    if (prefixes.canContain(row)) {
      this.#retired.add(row)
      return
    }
    const base = prefixes.scoped.base[row]!
    prefixes.remove(row)
    if (base !== 0) this.dropRow(base)
  }

  /** Frees unused rows of shorter prefixes. Call when a pass has found the container of every row again. */
  freeRetired(): void {
    for (const row of this.#retired) {
      const idle = this.prefixes.users[row] === 0 && this.prefixes.applied[row] === 0
      if (idle && (this.prefixes.flags[row]! & ROW_KEPT) === 0) this.prefixes.remove(row)
    }
    this.#retired.clear()
  }

  #hasOtherFactLike(first: number, kind: number, set: number): boolean {
    if (kind !== OWNER_NAME) return false
    for (let fact = first; fact !== 0; fact = this.facts.next[fact]!) {
      if (this.facts.kind[fact] === OWNER_NAME && this.facts.set[fact] === set) return true
    }
    return false
  }

  /** Merges the row's facts again, and derives the row's labels and identity from the result. */
  #recompute(row: number): void {
    const { prefixes } = this
    prefixes.parent[row] = prefixes.findContainer(row)
    const merged = mergeFacts(this.facts, prefixes.firstFact[row]!, this.#sets, this.#ownerText)
    this.#conflicts += merged.conflicts
    this.#sets.retain(merged.set)
    this.#sets.release(prefixes.own[row]!)
    prefixes.own[row] = merged.set
    this.#derive(row)
  }

  #derive(row: number): void {
    const { prefixes } = this
    const before = prefixes.derived[row]!
    const classBefore = prefixes.addressClass[row]!
    const around = prefixes.parent[row]!
    const has = prefixes.firstFact[row] !== 0
    const addressClass = has ? classOf(row, around, prefixes, this.facts) : identity(0)
    const family = prefixes.family(row)
    const labelsAround = around === 0 ? EMPTY_SET : prefixes.derived[around]!
    const derived = has
      ? this.deriver.derive(prefixes.own[row]!, labelsAround, addressClass, family)
      : EMPTY_SET
    if (derived === before && addressClass === classBefore && (has || prefixes.wanted[row] === 0))
      return
    this.#sets.retain(derived)
    this.#sets.release(before)
    prefixes.derived[row] = derived
    prefixes.addressClass[row] = addressClass
    this.#want(row, has ? derived : undefined, addressClass)
    if (prefixes.canContain(row)) this.#changedContainers.push(row)
    const { first, next } = prefixes.scoped
    for (let own = first[row]!; own !== 0; own = next[own]!) this.rederiveRow(own)
  }

  /** Gives the row the identity of the label set. `set` undefined: the row has no facts and gets no identity. */
  #want(row: number, set: number | undefined, addressClass: Identity, asker = this.asker): void {
    const { prefixes } = this
    const before = identity(prefixes.wanted[row]!)
    const charged = asker === 0 ? this.#chargedFor(row, before) : asker
    prefixes.flags[row]! &= ~ROW_DEGRADED
    this.degraded.delete(row)
    if (set === undefined) {
      prefixes.wanted[row] = 0
    } else if (this.deriver.isHost(set, addressClass)) {
      prefixes.wanted[row] = HOST
    } else {
      const acquired = this.#allocator.acquire(set, charged)
      prefixes.wanted[row] = acquired.identity
      if (acquired.degraded) {
        prefixes.flags[row]! |= ROW_DEGRADED
        this.degraded.add(row, charged)
      }
    }
    if (before !== 0 && before !== HOST) this.#allocator.release(before)
    this.markChanged(row)
  }

  /**
   * Returns the endpoint for which a new identity counts when no answer asks for it. This is the endpoint of the row's own scope. For a
   * row of the node it is the endpoint for which the degraded row counts, or else the endpoint for which the identity `before` counts.
   */
  #chargedFor(row: number, before: Identity): number {
    const scope = this.prefixes.scoped.scope[row]!
    return scope === 0 ? (this.degraded.askerOf(row) ?? this.#allocator.askerOf(before)) : scope
  }
}
