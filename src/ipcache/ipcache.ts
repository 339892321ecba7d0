// The IPCache turns facts into the wanted identity of every prefix. Names (answers, expiry, relabel) and configuration (CIDRs of
// policy, addresses of endpoints and of the node) write here; the committer reads. Always: the labels of a prefix are
// derive(union of its facts, labels of its container), and a row holds one reference to the identity that it wants and one to the
// identity that the datapath confirmed.
//
// A fact of a host touches that host only, with the views that endpoints have of it in scopes of their own. A fact of a shorter
// prefix can touch everything inside it; `Rederive` passes over these rows in bounded slices.

import { identity, type EndpointId, type Identity } from '../core/ids.ts'
import { widthOf, type Family, type Prefix } from '../core/ip.ts'
import { EMPTY_SET, type LabelSets } from '../core/labels.ts'
import type { Allocator } from '../identity/allocator.ts'
import { HOST } from '../identity/reserved.ts'
import { classOf, Deriver, mergeFacts } from './derive.ts'
import { DegradedRows } from './degraded-rows.ts'
import { Facts, OWNER_NAME } from './facts.ts'
import { PrefixTable } from './prefix-table.ts'

export const ROW_CHANGED = 1
export const ROW_REFUSED = 2
export const ROW_DEGRADED = 4
/** The datapath was given the row and has not confirmed or refused it yet. */
export const ROW_UNDER_WAY = 8

const ROW_KEPT = ROW_CHANGED | ROW_UNDER_WAY

export interface IpCacheOptions {
  readonly labelSets: LabelSets
  readonly allocator: Allocator
  /** Prefixes of the node, and facts about them. */
  readonly capacity: number
  /** Addresses in endpoints' own scopes, and facts about them. */
  readonly scopedCapacity: number
  /** Text of an owner, which decides when two owners of one kind claim the same key. */
  readonly ownerText: (kind: number, owner: number) => string
  /** `policies.cidr-matches-endpoints`. Default: false. */
  readonly knownHaveCidr?: boolean
}

export class IpCache {
  readonly prefixes: PrefixTable
  readonly facts: Facts
  readonly deriver: Deriver
  readonly #sets: LabelSets
  readonly #allocator: Allocator
  readonly #ownerText: (kind: number, owner: number) => string
  /** Rows whose entry in the datapath may differ from the wanted one. */
  #changed: number[] = []
  /** Containers without facts: rows inside may still name them as their container. */
  readonly #retired = new Set<number>()
  readonly degraded = new DegradedRows()
  /** Endpoint whose answer is being taken in and is charged for identities; 0 for none. */
  asker = 0
  /** Containers whose labels changed since the last pass. */
  #changedContainers: number[] = []
  #conflicts = 0

  constructor(options: IpCacheOptions) {
    this.#sets = options.labelSets
    this.#allocator = options.allocator
    this.#ownerText = options.ownerText
    this.prefixes = new PrefixTable(options)
    this.facts = new Facts({ capacity: options.capacity + options.scopedCapacity })
    this.deriver = new Deriver(options)
  }

  /** How often two owners claimed the same key of one prefix. */
  get conflicts(): number {
    return this.#conflicts
  }

  /** The row of an address, made when missing; 0 when the table is full. The caller then holds it. */
  holdAddress(family: Family, octets: Uint8Array, offset: number): number {
    const row = this.prefixes.findOrAdd(family, octets, offset, widthOf(family))
    if (row !== 0) this.prefixes.users[row]!++
    return row
  }

  /** Lets a row go that `holdAddress` gave. */
  dropRow(row: number): void {
    this.prefixes.users[row]!--
    this.freeIfIdle(row)
  }

  /** Adds a fact to a prefix; 0 when a table is full, and then nothing changed. */
  addPrefixFact(prefix: Prefix, kind: number, owner: number, set: number): number {
    const row = this.prefixes.findOrAdd(prefix.family, prefix.octets, 0, prefix.length)
    return row === 0 ? 0 : this.addFact(row, kind, owner, set)
  }

  /** Adds a name's fact to an endpoint's own view of an address, given the node's row; 0 as `addFact`. */
  addScopedFact(scope: EndpointId, base: number, owner: number, set: number): number {
    const row = this.prefixes.findOrAddScoped(scope, base)
    return row === 0 ? 0 : this.addFact(row, OWNER_NAME, owner, set)
  }

  /** Adds a fact to a row; 0 when the table is full, and then nothing changed. */
  addFact(row: number, kind: number, owner: number, set: number): number {
    const { prefixes, facts } = this
    const first = prefixes.firstFact[row]!
    const fact = facts.add(first, row, kind, owner, set)
    if (fact === 0) {
      this.freeIfIdle(row)
      return 0
    }
    this.#sets.retain(set)
    prefixes.users[row]!++
    prefixes.firstFact[row] = fact
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
    const first = facts.remove(fact, prefixes.firstFact[row]!)
    prefixes.firstFact[row] = first
    prefixes.users[row]!--
    if (first === 0 && prefixes.canContain(row)) prefixes.countContainer(row, -1)
    if (first === 0 || !this.#hasOtherFactLike(first, facts.kind[fact]!, set)) this.#recompute(row)
    this.#sets.release(set)
    this.freeIfIdle(row)
  }

  /** Derives a row again after something around it changed; what a pass over all rows calls. */
  rederiveRow(row: number): void {
    this.prefixes.parent[row] = this.prefixes.findContainer(row)
    if (this.prefixes.firstFact[row] !== 0) this.#derive(row)
  }

  /** Containers that changed since the last call: rows inside them are to be derived again. Each is kept until then. */
  takeChangedContainers(): readonly number[] {
    const changed = this.#changedContainers
    if (changed.length > 0) this.#changedContainers = []
    return changed
  }

  /** How many they are, those that changed twice counted twice. */
  get changedContainers(): number {
    return this.#changedContainers.length
  }

  get hasContainersChanged(): boolean {
    return this.#changedContainers.length > 0
  }

  /** Forgets all but the first `count` of them. The pass that changed the others also derives what is inside them. */
  keepChangedContainers(count: number): void {
    this.#changedContainers.length = count
  }

  /**
   * Rows whose entry may differ from the datapath's, each once. The caller settles every row and then clears its ROW_CHANGED.
   * The flag keeps the row from being freed before.
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

  /** Gives up to `limit` degraded rows their whole label set, as far as numbers are free again. */
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

  /** Frees a row that has no fact, no holder and no entry in the datapath. */
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

  /** Frees containers that are gone. Call when a pass has given every row its container anew. */
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

  /** Labels of the row's own facts from scratch, then what follows from them. */
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

  /** Points the row at the identity of its labels; none without facts. */
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

  /** The endpoint charged for a change without an answer: the owner of the row's scope, else the one charged before. */
  #chargedFor(row: number, before: Identity): number {
    const scope = this.prefixes.scoped.scope[row]!
    return scope === 0 ? (this.degraded.askerOf(row) ?? this.#allocator.askerOf(before)) : scope
  }
}
