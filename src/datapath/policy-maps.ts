// The wanted policy maps: per endpoint, per identity (or class, or 0), the flattened entries. Written when an endpoint's policy changes and
// when an identity comes into or goes out of use. Differences are collected for the next commit, new denies before new allows, old
// allows before old denies.
//
// Learning an address under a known label set never comes here (invariant 3). A new identity costs one look at each endpoint whose policy
// uses a selector that selects the identity.

import { addTo, removeFrom, type FewSet } from '../core/tables/few-set.ts'
import { ruleId, type EndpointId, type Identity } from '../core/ids.ts'
import type { Selector, SelectorCache } from '../identity/selector-cache.ts'
import type { FlatEntry } from '../policy/compile/flatten.ts'
import type { PolicyEntry } from './entries.ts'
import { newMap, type EndpointMap } from './endpoint-map.ts'
import { FlatRules, type EndpointRules } from './flat-rules.ts'
import { PolicyChanges, type PolicyTurn } from './policy-changes.ts'

export interface PolicyMapOptions {
  readonly selectors: SelectorCache
  /** `limits.policy-entries` per endpoint. */
  readonly entriesMax: number
  /** Whether only pre-allocation asks for an identity. */
  readonly isSpare: (id: Identity) => boolean
  /** Whether answers made an identity. Absent: none. */
  readonly isDynamic?: (id: Identity) => boolean
  /** Number under which an entry's origins are found again. */
  readonly ruleOf: (origins: readonly number[]) => number
}

/** Share of a map's entries that identities made by answers may have (docs/spec/semantics 3). */
const DYNAMIC_SHARE = 0.25

const NO_ENTRIES: readonly FlatEntry[] = []

export class PolicyMaps {
  readonly #selectors: SelectorCache
  readonly #entriesMax: number
  readonly #ruleOf: (origins: readonly number[]) => number
  readonly #maps = new Map<EndpointId, EndpointMap>()
  readonly #users = new Map<Selector, FewSet<EndpointMap>>()
  /** Pre-allocated identities that a map at half its size does without until an answer needs them. */
  readonly #leftOut = new Set<Identity>()
  /** Identities that lack entries because a map was full. */
  readonly #crowdedOut = new Set<Identity>()
  readonly #isSpare: (id: Identity) => boolean
  readonly #isDynamic: (id: Identity) => boolean
  readonly #reserving = new Set<EndpointMap>()
  readonly #flat: FlatRules
  readonly #changes = new PolicyChanges()
  #overflows = 0

  constructor(options: PolicyMapOptions) {
    this.#selectors = options.selectors
    this.#flat = new FlatRules(options)
    this.#entriesMax = options.entriesMax
    this.#ruleOf = options.ruleOf
    this.#isSpare = options.isSpare
    this.#isDynamic = options.isDynamic ?? (() => false)
  }

  /** How often an identity found no room in a map. */
  get overflows(): number {
    return this.#overflows
  }

  sizeOf(endpoint: EndpointId): number {
    return this.#maps.get(endpoint)?.size ?? 0
  }

  /** Entries of the endpoint's map that identities made by answers have. */
  dynamicSizeOf(endpoint: EndpointId): number {
    return this.#maps.get(endpoint)?.dynamicSize ?? 0
  }

  /**
   * Whether every map has room for the entries of one more dynamic label set, within the share of those; keeps it for
   * the identity that comes with the next commit.
   */
  reserve(set: number): boolean {
    const selectors = this.#selectors.selectorsFor(set)
    const maps = this.#usersOf(selectors)
    for (const map of maps) {
      const needed = this.#flat.entriesOf(map.rules, selectors).length + map.reserved
      if (map.dynamicSize + needed > this.#entriesMax * DYNAMIC_SHARE) return false
      if (map.size + needed > this.#entriesMax) return false
    }
    for (const map of maps) {
      map.reserved += this.#flat.entriesOf(map.rules, selectors).length
      this.#reserving.add(map)
    }
    return true
  }

  /** Gives an endpoint its rules; entries that stay the same cause nothing. */
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
      // At the start none has any.
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
    // What answers made gives way to what configuration makes.
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

  /** An identity came into use. False when a map was full. */
  addIdentity(id: Identity, selectors: readonly Selector[]): boolean {
    let complete = true
    for (const map of this.#usersOf(selectors)) complete = this.#enter(map, id) && complete
    return complete
  }

  /** Enters an identity that was left out while it was spare, now that an address has it. */
  need(id: Identity): void {
    if (this.#leftOut.delete(id)) this.addIdentity(id, this.#selectors.selectorsOf(id))
  }

  /** Whether every map has the identity's entries. */
  isComplete(id: Identity): boolean {
    return !this.#crowdedOut.has(id)
  }

  /** Tries identities again that found no room. */
  retry(): void {
    for (const id of this.#crowdedOut) {
      if (this.addIdentity(id, this.#selectors.selectorsOf(id))) this.#crowdedOut.delete(id)
    }
  }

  /** An identity went out of use. */
  removeIdentity(id: Identity, selectors: readonly Selector[]): void {
    this.#leftOut.delete(id)
    this.#crowdedOut.delete(id)
    for (const map of this.#usersOf(selectors)) this.#put(map, id, [])
  }

  /** What the next commit has to do, new denies and old allows first; hands the lists over. */
  take(): PolicyTurn {
    for (const map of this.#reserving) map.reserved = 0
    this.#reserving.clear()
    return this.#changes.take()
  }

  /** Whether the last `take` left entries for a commit that is to follow at once. */
  get isSplit(): boolean {
    return this.#changes.isSplit
  }

  /** Puts entries of the last `take` that were refused on the lists again, but those decided anew meanwhile. */
  putBack(upserts: readonly PolicyEntry[], removals: readonly PolicyEntry[]): void {
    this.#changes.putBack({ upserts, removals })
  }

  /** Whether an endpoint's entries for an identity wait for a commit. */
  isChanged(endpoint: EndpointId, id: Identity): boolean {
    return this.#changes.hasUpserts(endpoint, id)
  }

  /** Everything that is wanted, for comparing with the kernel. */
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
   * Gives an identity its entries in a map; a spare one only while the map is under half. False when it is full: then a dynamic
   * one has what denies it there, so that an allow that is wider does not let it pass, and nothing that allows it.
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

  /** Notes what the next commit has to write and to take out. */
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
      this.#changes.upsert(this.#policyEntry(endpoint, id, entry))
    }
    for (const old of kept?.values() ?? []) {
      this.#changes.remove(this.#policyEntry(endpoint, id, old))
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
