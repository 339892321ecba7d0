// PolicyMaps holds the wanted policy map of each endpoint. A map has the flattened entries of each identity, of each class, and of 0, which
// means any identity. A map changes when the endpoint's policy changes, and when an identity comes into use or goes out of use. PolicyMaps
// passes the differences to PolicyChanges for the next commit.
//
// Learning an address under a known label set does not use PolicyMaps (invariant 3). A new identity costs one look at each endpoint whose
// policy uses a selector that selects the identity.
//
// Two kinds of identities cannot fill a map. Spare identities are those that only pre-allocation wants. They get entries only while the map
// is below half of its bound. Dynamic identities are those that answers made. They can use a quarter of the bound.

import { addTo, removeFrom, type FewSet } from '../core/tables/few.ts'
import { ruleId, type EndpointId, type Identity } from '../core/ids.ts'
import type { LabelSets } from '../core/labels.ts'
import type { Selector, SelectorCache } from '../identity/selector-cache.ts'
import type { FlatEntry } from '../policy/compile/flatten.ts'
import type { PolicyEntry } from './entries.ts'
import { newMap, type EndpointMap } from './endpoint-map.ts'
import { FlatRules, type EndpointRules } from './flat-rules.ts'
import { PolicyChanges } from './policy-changes.ts'

/** The part of a map's bound that dynamic identities can use (docs/spec/semantics 3). */
const DYNAMIC_SHARE = 0.25

const NO_ENTRIES: readonly FlatEntry[] = []

export class PolicyMaps {
  /** The differences for the next commit. */
  readonly changes = new PolicyChanges()
  readonly #selectors: SelectorCache
  readonly #entriesMax: number
  readonly #ruleOf: (origins: readonly number[]) => number
  readonly #maps = new Map<EndpointId, EndpointMap>()
  readonly #users = new Map<Selector, FewSet<EndpointMap>>()
  /** Spare identities that a map at half of its bound left out. They are added when an address gets the identity. */
  readonly #leftOut = new Set<Identity>()
  /** Identities that lack entries in at least one map, because the map was full. */
  readonly #crowdedOut = new Set<Identity>()
  readonly #isSpare: (id: Identity) => boolean
  readonly #isDynamic: (id: Identity) => boolean
  readonly #reserving = new Set<EndpointMap>()
  readonly #flat: FlatRules
  #overflows = 0

  constructor(options: {
    readonly selectors: SelectorCache
    readonly labelSets: LabelSets
    /** Returns the label set of an identity that is in use. */
    readonly setOf: (id: Identity) => number | undefined
    /** The bound of each map: `limits.policy-entries`. */
    readonly entriesMax: number
    /** True if only pre-allocation wants the identity. */
    readonly isSpare: (id: Identity) => boolean
    /** True if answers made the identity. Absent: always false. */
    readonly isDynamic?: (id: Identity) => boolean
    /** Returns the number that stands for a set of origins. An origin is a rule, or a default deny (see RuleOrigins). */
    readonly ruleOf: (origins: readonly number[]) => number
  }) {
    this.#selectors = options.selectors
    this.#flat = new FlatRules(options)
    this.#entriesMax = options.entriesMax
    this.#ruleOf = options.ruleOf
    this.#isSpare = options.isSpare
    this.#isDynamic = options.isDynamic ?? (() => false)
  }

  /**
   * How many identities found no room for all their entries in a full map. Several full maps and repeated tries count as one. An identity
   * is counted again only if `retry` found room in every map in between, or if the identity went out of use and came back.
   */
  get overflows(): number {
    return this.#overflows
  }

  /** How many policy entries the endpoint's map has. */
  sizeOf(endpoint: EndpointId): number {
    return this.#maps.get(endpoint)?.size ?? 0
  }

  /** How many policy entries the dynamic identities have in the endpoint's map. */
  dynamicSizeOf(endpoint: EndpointId): number {
    return this.#maps.get(endpoint)?.dynamicSize ?? 0
  }

  /**
   * Reserves room in every map for the entries of a new dynamic label set, until `endReservation`. Returns false and reserves nothing if a
   * map lacks the room.
   */
  reserve(set: number): boolean {
    const selectors = this.#selectors.selectorsFor(set)
    const maps = this.#usersOf(selectors)
    for (const map of maps) {
      const needed = this.#flat.entriesOf(map.rules, selectors, set).length + map.reserved
      if (map.dynamicSize + needed > this.#entriesMax * DYNAMIC_SHARE) return false
      if (map.size + needed > this.#entriesMax) return false
    }
    for (const map of maps) {
      map.reserved += this.#flat.entriesOf(map.rules, selectors, set).length
      this.#reserving.add(map)
    }
    return true
  }

  /** Sets the rules of an endpoint. Entries that stay the same cause no write. */
  setRules(endpoint: EndpointId, rules: EndpointRules): void {
    const known = this.#maps.get(endpoint)
    const map = known ?? newMap(endpoint, rules)
    if (known !== undefined) this.#forgetUser(known)
    map.rules = rules
    this.#maps.set(endpoint, map)
    const wanted = new Set<Identity>(rules.levels.keys())
    const dynamic = new Set<Identity>()
    const spare = new Set<Identity>()
    for (const selector of rules.selectors.keys()) {
      addTo(this.#users, selector, map)
      // Saves time at the start, when no selector has an identity.
      if (selector.identities.size === 0) continue
      for (const id of selector.identities) {
        if (this.#isSpare(id)) spare.add(id)
        else if (this.#isDynamic(id)) dynamic.add(id)
        else wanted.add(id)
      }
    }
    for (const id of map.entries.keys()) {
      if (!wanted.has(id) && !dynamic.has(id) && !spare.has(id)) this.#put(map, id, [])
    }
    // Entries from configuration need the room, so all entries of dynamic identities are removed first and entered again below.
    const needed = [...wanted].reduce(
      (sum, id) => sum + this.#flat.entriesFor(map.rules, id).length,
      0,
    )
    if (needed + map.dynamicSize > this.#entriesMax) {
      for (const id of [...map.dynamic]) this.#put(map, id, [])
    }
    for (const id of [...wanted, ...dynamic, ...spare]) this.#enter(map, id)
  }

  removeEndpoint(endpoint: EndpointId): void {
    const map = this.#maps.get(endpoint)
    if (map === undefined) return
    this.#forgetUser(map)
    for (const id of [...map.entries.keys()]) this.#put(map, id, [])
    this.#maps.delete(endpoint)
  }

  /** Adds an identity that came into use to the maps. Returns false if a map was full. */
  addIdentity(id: Identity, selectors: readonly Selector[]): boolean {
    let complete = true
    for (const map of this.#usersOf(selectors)) complete = this.#enter(map, id) && complete
    return complete
  }

  /** Adds an identity that was left out while it was spare. Call this when an address has the identity. */
  need(id: Identity): void {
    if (this.#leftOut.delete(id)) this.addIdentity(id, this.#selectors.selectorsOf(id))
  }

  /** True if every map had room for the entries of the identity, or left the identity out as spare. */
  isComplete(id: Identity): boolean {
    return !this.#crowdedOut.has(id)
  }

  /** Tries again to add the identities that found no room. */
  retry(): void {
    for (const id of this.#crowdedOut) {
      if (this.addIdentity(id, this.#selectors.selectorsOf(id))) this.#crowdedOut.delete(id)
    }
  }

  /** Removes an identity that went out of use from the maps. */
  removeIdentity(id: Identity, selectors: readonly Selector[]): void {
    this.#leftOut.delete(id)
    this.#crowdedOut.delete(id)
    for (const map of this.#usersOf(selectors)) this.#put(map, id, [])
  }

  /** True if the next commit must call `need` for its identities, then `endReservation`: an identity is left out, or room is reserved. */
  get awaitsIdentities(): boolean {
    return this.#leftOut.size + this.#reserving.size > 0
  }

  /** Ends all reservations. The identities have their entries now. */
  endReservation(): void {
    for (const map of this.#reserving) map.reserved = 0
    this.#reserving.clear()
  }

  /** All wanted entries of all maps. Reconciliation compares them with the kernel. */
  *entries(): Iterable<PolicyEntry> {
    for (const endpoint of this.#maps.keys()) yield* this.entriesOf(endpoint)
  }

  *entriesOf(endpoint: EndpointId): Iterable<PolicyEntry> {
    for (const [id, entries] of this.#maps.get(endpoint)?.entries ?? []) {
      for (const entry of entries) yield this.#policyEntry(endpoint, id, entry)
    }
  }

  #usersOf(selectors: readonly Selector[]): Iterable<EndpointMap> {
    const [only] = selectors
    if (only !== undefined && selectors.length === 1) return this.#users.get(only) ?? []
    const maps = new Set<EndpointMap>()
    for (const selector of selectors) {
      for (const map of this.#users.get(selector) ?? []) maps.add(map)
    }
    return maps
  }

  #forgetUser(map: EndpointMap): void {
    for (const selector of map.rules.selectors.keys()) removeFrom(this.#users, selector, map)
  }

  /**
   * Writes the entries of an identity to a map. If there is no room, returns false, and the map gets only the deny entries of the identity,
   * if they fit. Without them, an entry of a class or of 0 could allow what they deny. If a spare identity has no room in half of the
   * bound, the map leaves the identity out, and this method returns true.
   */
  #enter(map: EndpointMap, id: Identity): boolean {
    const entries = this.#flat.entriesFor(map.rules, id)
    const spare = this.#isSpare(id)
    if (this.#hasRoom(map, id, entries.length, spare)) {
      this.#put(map, id, entries)
      return true
    }
    if (spare) {
      this.#put(map, id, [])
      this.#leftOut.add(id)
      return true
    }
    const denies = entries.filter(({ action }) => action === 'deny')
    const before = map.entries.get(id)?.length ?? 0
    const fits = map.size - before + denies.length <= this.#entriesMax
    this.#put(map, id, fits ? denies : [])
    if (!this.#crowdedOut.has(id)) this.#overflows++
    this.#crowdedOut.add(id)
    return false
  }

  #hasRoom(map: EndpointMap, id: Identity, count: number, spare: boolean): boolean {
    const before = map.entries.get(id)?.length ?? 0
    if (this.#isDynamic(id)) {
      const own = map.dynamic.has(id) ? before : 0
      if (map.dynamicSize - own + count > this.#entriesMax * DYNAMIC_SHARE) return false
    }
    const room = spare ? this.#entriesMax / 2 : this.#entriesMax
    return count <= before || map.size - before + count <= room
  }

  #put(map: EndpointMap, id: Identity, entries: readonly FlatEntry[]): void {
    const before = map.entries.get(id) ?? NO_ENTRIES
    if (before === entries) return
    this.#replace(map.endpoint, id, before, entries)
    map.size += entries.length - before.length
    if (map.dynamic.delete(id)) map.dynamicSize -= before.length
    if (entries.length > 0 && this.#isDynamic(id)) {
      map.dynamic.add(id)
      map.dynamicSize += entries.length
    }
    if (entries.length === 0) map.entries.delete(id)
    else map.entries.set(id, entries)
  }

  /** Notes what the next commit has to write and to remove. */
  #replace(
    endpoint: EndpointId,
    id: Identity,
    before: readonly FlatEntry[],
    entries: readonly FlatEntry[],
  ): void {
    const isNew = before.length === 0
    const kept = isNew ? undefined : new Map(before.map((each) => [keyOf(each), each]))
    for (const entry of entries) {
      const old = kept?.get(keyOf(entry))
      kept?.delete(keyOf(entry))
      if (old !== undefined && sameEntry(old, entry)) continue
      this.changes.upsert(this.#policyEntry(endpoint, id, entry))
    }
    for (const old of kept?.values() ?? []) {
      this.changes.remove(this.#policyEntry(endpoint, id, old))
    }
  }

  #policyEntry(endpoint: EndpointId, id: Identity, entry: FlatEntry): PolicyEntry {
    const { protocol, port, portBits, action } = entry
    const rule = ruleId(this.#ruleOf(entry.origins))
    return { endpoint, identity: id, protocol, port, portBits, verdict: action, rule }
  }
}

function keyOf(entry: FlatEntry): number {
  return (entry.protocol * 32 + entry.portBits) * 65_536 + entry.port
}

function sameEntry(a: FlatEntry, b: FlatEntry): boolean {
  if (a.action !== b.action || a.origins.length !== b.origins.length) return false
  return a.origins.every((origin, i) => origin === b.origins[i])
}
