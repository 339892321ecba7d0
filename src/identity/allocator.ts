// Label set -> numeric identity, with counted references. Equal sets have one number while anything refers to it and for a delay
// after, so that a name that comes and goes keeps its number. A number goes to another set only after the delay, and in practice
// only after all 2^24 numbers went round (numbers.ts).
//
// A set with a `fqdn:` label that configuration did not pre-allocate is dynamic: an answer makes it. Dynamic sets have a bound of
// their own, and at the bound a set falls back to one with fewer fqdn labels (docs/spec/semantics 3).

import type { Clock } from '../core/clock.ts'
import type { Identity } from '../core/ids.ts'
import { invariant } from '../core/invariant.ts'
import { EMPTY_SET, type LabelSets } from '../core/labels.ts'
import { DynamicBudget } from './dynamic-budget.ts'
import { Numbers, type NumbersOptions } from './numbers.ts'
import { FallbackIdentities } from './fallback-identities.ts'

/** How long an unused number stays with its label set, in milliseconds. */
const REUSE_DELAY_MS = 600_000
/** The most numbers that wait for the delay. Beyond it the oldest goes early. */
const COOLING_MAX = 65_536

interface Entry {
  readonly identity: Identity
  readonly set: number
  readonly baseSet: number
  references: number
  preallocated: boolean
  dynamic: boolean
  /** Endpoint whose answer made a dynamic one, 0 for none. */
  asker: number
  /** When the last reference went; meaningful at 0 references. */
  freedAt: number
}

export interface Acquired {
  readonly identity: Identity
  /** True when the identity lacks fqdn labels that were wanted. */
  readonly degraded: boolean
}

export interface IdentityView {
  readonly id: Identity
  readonly set: number
  readonly references: number
  readonly preallocated: boolean
}

export class Allocator {
  readonly #sets: LabelSets
  readonly #clock: Clock
  readonly budget: DynamicBudget
  readonly #hasEntries: (set: number) => boolean
  readonly #bySet = new Map<number, Entry>()
  readonly #byNumber = new Map<Identity, Entry>()
  readonly #fallbacks: FallbackIdentities<Entry>
  readonly #cooling = new Set<Entry>()
  readonly numbers: Numbers
  #allocated: Identity[] = []
  #fresh: Identity[] = []
  #unused = new Set<Identity>()
  #allocations = 0
  #fallbackCount = 0

  constructor(
    options: NumbersOptions & {
      readonly labelSets: LabelSets
      readonly clock: Clock
      readonly dynamicMax: number
      /** Of those, made by answers to one endpoint. */
      readonly dynamicPerEndpointMax: number
      /** Whether policy maps have room for the entries of a dynamic set. The room is reserved until the next commit. */
      readonly hasEntries?: (set: number) => boolean
    },
  ) {
    this.#sets = options.labelSets
    this.#clock = options.clock
    this.budget = new DynamicBudget({
      max: options.dynamicMax,
      perEndpointMax: options.dynamicPerEndpointMax,
    })
    this.#hasEntries = options.hasEntries ?? (() => true)
    this.#fallbacks = new FallbackIdentities(options)
    this.numbers = new Numbers(options)
  }

  /** Identities in use by prefixes or pre-allocation. */
  get inUse(): number {
    return this.#byNumber.size - this.#cooling.size
  }

  get dynamicInUse(): number {
    return this.budget.used
  }

  /** Numbers given out since the start. */
  get allocations(): number {
    return this.#allocations
  }

  /** How often a set fell back to an identity with fewer labels. */
  get fallbacks(): number {
    return this.#fallbackCount
  }

  /** Whether a label set has an identity in use, or could get one for a query of this endpoint. */
  canAcquire(set: number, asker: number): boolean {
    const known = this.#bySet.get(set)
    if (known !== undefined && known.references > 0) return true
    if (this.#sets.get(set).fqdnCount === 0) return true
    return this.budget.hasRoom(asker) && this.#hasEntries(set)
  }

  /** A counted reference to the identity of a label set, or to its fallback at the bound. `asker`: the endpoint whose answer
   *  wants it, 0 for none. */
  acquire(set: number, asker = 0): Acquired {
    const known = this.#bySet.get(set)
    if (this.canAcquire(set, asker)) {
      const dynamic = this.#sets.get(set).fqdnCount > 0
      const entry = known ?? this.#allocate(set, dynamic)
      return { identity: this.#refer(entry, asker), degraded: false }
    }
    this.#fallbackCount++
    return { identity: this.#refer(this.#fallback(set)), degraded: true }
  }

  /** The endpoint that is charged for an identity, 0 for none. */
  askerOf(id: Identity): number {
    return this.#byNumber.get(id)?.asker ?? 0
  }

  isDynamic(id: Identity): boolean {
    return this.#byNumber.get(id)?.dynamic === true
  }

  /** One more reference to an identity that is in use. */
  retain(id: Identity): void {
    const entry = this.#byNumber.get(id)
    invariant(entry !== undefined && entry.references > 0, 'a retained identity is in use', id)
    entry.references++
  }

  /** As `acquire`, for sets that configuration foresees: never dynamic, never a fallback. */
  preallocate(set: number): Identity {
    const entry = this.#bySet.get(set) ?? this.#allocate(set, false)
    entry.preallocated = true
    if (entry.dynamic) {
      entry.dynamic = false
      if (entry.references > 0) this.budget.giveBack(entry.asker)
      entry.asker = 0
    }
    return this.#refer(entry)
  }

  /** Takes back one reference of `preallocate`. */
  unpreallocate(id: Identity): void {
    const entry = this.#byNumber.get(id)
    invariant(entry !== undefined, 'a pre-allocated identity is known', id)
    entry.preallocated = false
    entry.dynamic = this.#sets.get(entry.set).fqdnCount > 0
    if (entry.dynamic) this.budget.take(entry.asker)
    this.release(id)
  }

  release(id: Identity): void {
    const entry = this.#byNumber.get(id)
    invariant(entry !== undefined && entry.references > 0, 'a released identity is referenced', id)
    entry.references--
    if (entry.references > 0) return
    entry.freedAt = this.#clock.now()
    this.#cooling.add(entry)
    this.#unused.add(id)
    if (entry.dynamic) this.budget.giveBack(entry.asker)
  }

  /** Identities that got a number since the last call, a new one or a withheld one, in order. */
  takeAllocated(): readonly Identity[] {
    const allocated = this.#allocated
    if (allocated.length > 0) this.#allocated = []
    return allocated
  }

  /** Identities that came into use since the last call, in order. */
  takeFresh(): readonly Identity[] {
    if (this.#fresh.length === 0) return this.#fresh
    const fresh = this.#fresh.filter((id) => this.#byNumber.get(id)?.references !== 0)
    this.#fresh = []
    return fresh
  }

  /** Identities that went out of use since the last call and still are. */
  takeUnused(): readonly Identity[] {
    if (this.#unused.size === 0) return []
    const unused = [...this.#unused]
    this.#unused = new Set()
    return unused
  }

  /** Gives up numbers whose delay is over, once `takeUnused` has returned them. Call now and then. */
  sweep(): void {
    const due = this.#clock.now() - REUSE_DELAY_MS
    for (const entry of this.#cooling) {
      if (entry.freedAt > due && this.#cooling.size <= COOLING_MAX) break
      if (!this.#unused.has(entry.identity)) this.#forget(entry)
    }
  }

  /** Whether only pre-allocation refers to an identity. */
  isSpare(id: Identity): boolean {
    const entry = this.#byNumber.get(id)
    return entry !== undefined && entry.preallocated && entry.references === 1
  }

  setOf(id: Identity): number | undefined {
    return this.#byNumber.get(id)?.set
  }

  /** The identity of a set that is in use, without a new reference. */
  find(set: number): Identity | undefined {
    const entry = this.#bySet.get(set)
    return entry === undefined || entry.references === 0 ? undefined : entry.identity
  }

  /** Every number that has a label set, in use or not, with the set. */
  *numbered(): Iterable<Pick<IdentityView, 'id' | 'set'>> {
    for (const { identity: id, set } of this.#byNumber.values()) yield { id, set }
  }

  *views(): Iterable<IdentityView> {
    for (const entry of this.#byNumber.values()) {
      if (entry.references === 0) continue
      const { identity: id, set, references, preallocated } = entry
      yield { id, set, references, preallocated }
    }
  }

  /** Label sets that are retained here, one entry for each reference; for checks. */
  *heldSets(): Iterable<number> {
    for (const { set, baseSet } of this.#byNumber.values()) {
      for (const held of [set, baseSet]) if (held !== EMPTY_SET) yield held
    }
  }

  #refer(entry: Entry, asker = 0): Identity {
    if (entry.references === 0) {
      this.#cooling.delete(entry)
      entry.asker = asker
      if (entry.dynamic) this.budget.take(asker)
      if (!this.#unused.delete(entry.identity)) this.#fresh.push(entry.identity)
    }
    entry.references++
    return entry.identity
  }

  #allocate(set: number, dynamic: boolean): Entry {
    const baseSet = this.#baseOf(set)
    this.#sets.retain(set)
    this.#sets.retain(baseSet)
    const entry: Entry = {
      identity: this.numbers.take(
        () => this.#sets.format(set),
        (id) => this.#byNumber.has(id),
      ),
      set,
      baseSet,
      references: 0,
      preallocated: false,
      dynamic,
      asker: 0,
      freedAt: 0,
    }
    this.#bySet.set(set, entry)
    this.#byNumber.set(entry.identity, entry)
    this.#fallbacks.add(entry)
    this.#allocations++
    this.#allocated.push(entry.identity)
    return entry
  }

  #baseOf(set: number): number {
    const wanted = this.#sets.get(set)
    if (wanted.fqdnCount === 0) return set
    return this.#sets.internLabels(wanted.labels.filter((label) => label.kind !== 'fqdn'))
  }

  /** The fallback for a set. The set without fqdn labels is allocated when no other fits. */
  #fallback(set: number): Entry {
    const base = this.#baseOf(set)
    return this.#fallbacks.find(set, base) ?? this.#bySet.get(base) ?? this.#allocate(base, false)
  }

  #forget(entry: Entry): void {
    this.#cooling.delete(entry)
    this.#bySet.delete(entry.set)
    this.#byNumber.delete(entry.identity)
    this.#fallbacks.remove(entry)
    this.#sets.release(entry.set)
    this.#sets.release(entry.baseSet)
  }
}
