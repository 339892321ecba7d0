// The allocator gives each label set a number, its identity, and counts the references to it. A set keeps its number while there are
// references, and for a delay after the last one. So a name that is forgotten and learned again keeps its number. Another set can get the
// number only after the delay, and in practice only after all 2^24 numbers were used (numbers.ts).
//
// An identity is dynamic if its set has a `fqdn:` label and configuration did not pre-allocate it. Answers make dynamic identities. They
// have a bound of their own, and at the bound a set gets a fallback identity with fewer fqdn labels (docs/spec/semantics 3).

import type { Clock } from '../core/clock.ts'
import type { Identity } from '../core/ids.ts'
import { invariant } from '../core/invariant.ts'
import { EMPTY_SET, type LabelSets } from '../core/labels.ts'
import { DynamicBudget } from './dynamic-budget.ts'
import { Numbers, type NumbersOptions } from './numbers.ts'
import { FallbackIdentities } from './fallback-identities.ts'

/** How long an unused number stays with its label set, in milliseconds. */
const REUSE_DELAY_MS = 600_000
/** At most this many unused numbers stay with their label sets. If there are more, the oldest loses its set before the delay is over. */
const COOLING_MAX = 65_536

interface Entry {
  readonly identity: Identity
  readonly set: number
  readonly baseSet: number
  references: number
  preallocated: boolean
  dynamic: boolean
  /** The endpoint whose answer made a dynamic identity, 0 for none. */
  asker: number
  /** `Clock.now()` when the last reference was released. Valid while there are no references. */
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

/** Changes of identities since the last `takeChanges`, each list in the order of the changes. */
export interface IdentityChanges {
  /** Identities whose label set got a number, either a new or a withheld one. */
  readonly allocated: readonly Identity[]
  /** Identities that got their first reference and still have references. */
  readonly fresh: readonly Identity[]
  /** Identities that lost their last reference and still have none. */
  readonly unused: readonly Identity[]
}

export class Allocator {
  /** True when `takeChanges` may return changes. */
  hasChanges = false
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
  readonly #unused = new Set<Identity>()
  #allocations = 0
  #fallbackCount = 0

  constructor(
    options: NumbersOptions & {
      readonly labelSets: LabelSets
      readonly clock: Clock
      readonly dynamicMax: number
      /** The most dynamic identities from answers to one endpoint. */
      readonly dynamicPerEndpointMax: number
      /** Returns true if policy maps have room for the entries of a dynamic set. Reserves this room until the next commit. */
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

  /** How many identities have references, from prefixes or from pre-allocation. */
  get inUse(): number {
    return this.#byNumber.size - this.#cooling.size
  }

  get dynamicInUse(): number {
    return this.budget.used
  }

  /** How many label sets got a number since the start. */
  get allocations(): number {
    return this.#allocations
  }

  /** How often a set got a fallback identity. */
  get fallbacks(): number {
    return this.#fallbackCount
  }

  /** Returns true if `acquire` would give the set an identity of its own. `asker`: the endpoint whose answer wants it, 0 for none. */
  canAcquire(set: number, asker: number): boolean {
    const known = this.#bySet.get(set)
    if (known !== undefined && known.references > 0) return true
    if (this.#sets.get(set).fqdnCount === 0) return true
    return this.budget.hasRoom(asker) && this.#hasEntries(set)
  }

  /** Returns a counted reference to the identity of a label set, or at the bound to its fallback identity. `asker` as in `canAcquire`. */
  acquire(set: number, asker = 0): Acquired {
    if (this.canAcquire(set, asker)) {
      const dynamic = this.#sets.get(set).fqdnCount > 0
      const entry = this.#bySet.get(set) ?? this.#allocate(set, dynamic)
      return { identity: this.#refer(entry, asker), degraded: false }
    }
    this.#fallbackCount++
    return { identity: this.#refer(this.#fallback(set)), degraded: true }
  }

  /** Returns the endpoint for which an identity is counted, 0 for none. */
  askerOf(id: Identity): number {
    return this.#byNumber.get(id)?.asker ?? 0
  }

  isDynamic(id: Identity): boolean {
    return this.#byNumber.get(id)?.dynamic === true
  }

  /** Adds a reference to an identity that has references. */
  retain(id: Identity): void {
    const entry = this.#byNumber.get(id)
    invariant(entry !== undefined && entry.references > 0, 'a retained identity is in use', id)
    entry.references++
  }

  /** Does the work of `acquire` for a set that configuration needs. The identity is never dynamic and never a fallback identity. */
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

  /** Releases a reference of `preallocate`. */
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
    this.hasChanges = true
    if (entry.dynamic) this.budget.giveBack(entry.asker)
  }

  /** Returns the changes since the last call. */
  takeChanges(): IdentityChanges {
    const allocated = this.#allocated
    const fresh = this.#fresh.filter((id) => this.#byNumber.get(id)?.references !== 0)
    const unused = [...this.#unused]
    this.#allocated = []
    this.#fresh = []
    this.#unused.clear()
    this.hasChanges = false
    return { allocated, fresh, unused }
  }

  /** Frees numbers whose delay is over, if `takeChanges` has returned them as unused. Call this from time to time. */
  sweep(): void {
    const due = this.#clock.now() - REUSE_DELAY_MS
    for (const entry of this.#cooling) {
      if (entry.freedAt > due && this.#cooling.size <= COOLING_MAX) break
      if (!this.#unused.has(entry.identity)) this.#forget(entry)
    }
  }

  /** Returns true if the only reference to an identity is its pre-allocation. */
  isSpare(id: Identity): boolean {
    const entry = this.#byNumber.get(id)
    return entry !== undefined && entry.preallocated && entry.references === 1
  }

  setOf(id: Identity): number | undefined {
    return this.#byNumber.get(id)?.set
  }

  /** Returns the identity of a set if it has references, without a new reference. */
  find(set: number): Identity | undefined {
    const entry = this.#bySet.get(set)
    return entry === undefined || entry.references === 0 ? undefined : entry.identity
  }

  /** Returns every number that has a label set, with the set, even if the identity has no references. */
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

  /** Returns the label sets that this object retains, once for each reference. Checks of the tables use it. */
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
      this.hasChanges = true
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
    this.hasChanges = true
    return entry
  }

  #baseOf(set: number): number {
    const wanted = this.#sets.get(set)
    if (wanted.fqdnCount === 0) return set
    return this.#sets.internLabels(wanted.labels.filter((label) => label.kind !== 'fqdn'))
  }

  /** Returns the fallback identity for a set. If no identity in use fits, this is the identity of the set without its fqdn labels. */
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
