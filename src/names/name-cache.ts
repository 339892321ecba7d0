// The name cache records which addresses the names resolve to. Each entry (endpoint, name, address) has a lifetime. From the entries
// the cache makes facts in the IPCache, with the labels of all FQDN selectors that match the name. With `learning: node` there is one
// fact per (name, address). With `learning: endpoint` there is one in the scope of each endpoint that asked. The cache keeps every
// answer to a known endpoint, even when no selector matches the name, so that a selector added later applies to the answer.
//
// The pipeline (`renew`, `learn`), expiry (`forget`) and relabelling change the cache, all in one thread. An answer for a known entry
// costs one table probe, which finds the name. The lists of the name lead to address and entry. At a bound the cache first evicts
// another entry (eviction/), but never one that the present batch of answers needs.

import type { Clock } from '../core/clock.ts'
import type { EndpointId } from '../core/ids.ts'
import { widthOf, type Family } from '../core/ip.ts'
import type { LabelSets } from '../core/labels.ts'
import type { Limits } from '../core/limits.ts'
import type { IpCache } from '../ipcache/ipcache.ts'
import { ExpiryWheel } from './expiry/expiry-wheel.ts'
import type { FactLabels, NameLabeller } from './labels/fact-labels.ts'
import type { Guard } from './guard.ts'
import { GRACE_AS_IT_IS, type Lesson } from './lesson.ts'
import { KnownEntries } from './tables/known-entries.ts'
import type { MappingTable } from './tables/mapping-table.ts'
import type { NameScopes } from './name-scopes.ts'
import type { NameKey, NameTable } from './tables/name-table.ts'
import type { EntryLedger } from './tables/entry-ledger.ts'
import { EntryRows } from './tables/entry-rows.ts'
import type { EntryTable } from './tables/entry-table.ts'
import { Eviction, type NameBounds } from './eviction/eviction.ts'

/**
 * `live`: the TTL has not ended. `connected`: TTL and grace are over, and a connection is open. `grace`: in all other cases, also
 * when TTL and grace are over and expiry has not removed the entry yet.
 */
export type EntryState = 'live' | 'grace' | 'connected'

export interface NameCacheOptions {
  readonly ipcache: IpCache
  readonly labelSets: LabelSets
  readonly labeller: NameLabeller
  readonly clock: Clock
  readonly bounds: NameBounds & Pick<Limits, 'connections-per-endpoint'>
  /** `dns.grace-after-ttl` in seconds. */
  readonly graceSeconds: number
  readonly scopes: NameScopes
  /** Says which addresses get no labels from names, or only from names of some documents. Absent: no address is guarded. */
  readonly guard?: Pick<Guard, 'levelOf'> | undefined
  /** Lists the entries that need a new record in the state. Absent: no entry is saved. */
  readonly ledger?: EntryLedger | undefined
}

/** Saved entries of an earlier process that the restart has not brought back yet. */
export interface ToRestore {
  /** Brings back all saved entries and labels of the address at `offset`. */
  claim(family: Family, octets: Uint8Array, offset: number): void
}

/** Lifetimes are counted in ticks of this many milliseconds. */
const TICK_MS = 1000
/** The table of open peers has room for at least 8 endpoints that each have `limits.connections-per-endpoint` connections. */
const CONNECTED_ENDPOINTS = 8

export class NameCache {
  readonly rows: EntryRows
  readonly names: NameTable
  readonly mappings: MappingTable
  readonly entries: EntryTable
  readonly wheel: ExpiryWheel
  readonly graceSeconds: number
  readonly scopes: NameScopes
  readonly labels: FactLabels
  readonly eviction: Eviction
  readonly #known: KnownEntries
  readonly #ipcache: IpCache
  readonly #labeller: NameLabeller
  readonly #clock: Clock
  readonly #ledger: EntryLedger | undefined
  /**
   * Set while a restart still brings saved entries back. `learn` first claims the address here. So the first commit of the address has
   * the labels of all its names, and not only those of the name in the answer.
   */
  toRestore: ToRestore | undefined
  #boundHits = 0

  constructor(options: NameCacheOptions) {
    const { bounds, ipcache } = options
    const capacity = bounds.pairs
    this.#ipcache = ipcache
    this.#labeller = options.labeller
    this.#clock = options.clock
    this.#ledger = options.ledger
    this.scopes = options.scopes
    this.graceSeconds = options.graceSeconds
    const openPeers = Math.max(capacity, CONNECTED_ENDPOINTS * bounds['connections-per-endpoint'])
    const rows = new EntryRows({ ...options, capacity, wildcards: bounds, openPeers })
    this.rows = rows
    this.names = rows.names
    this.mappings = rows.mappings
    this.entries = rows.entries
    this.labels = rows.labels
    this.wheel = new ExpiryWheel({ capacity, tick: this.tick() })
    this.eviction = new Eviction({
      rows,
      prefixes: ipcache.prefixes,
      labeller: options.labeller,
      bounds,
      forget: (entry) => this.forget(entry),
    })
    const { names, mappings, entries } = rows
    this.#known = new KnownEntries({ names, mappings, entries, prefixes: ipcache.prefixes })
  }

  /** Begins the next batch of answers. Entries learned after this call are not evicted until `begin` is called again. */
  begin(): void {
    this.rows.begin()
  }

  /** The present time of the clock in whole seconds. */
  tick(): number {
    return Math.floor(this.#clock.now() / TICK_MS)
  }

  /** How often a bound kept an address from being learned or labelled. */
  get boundHits(): number {
    return this.#boundHits
  }

  /**
   * Learns one address of an answer. Returns the IPCache row that holds the endpoint's view of the address. Returns 0 if a bound kept
   * the address out. Nothing was added then, but other entries may have been evicted.
   */
  learn(lesson: Lesson): number {
    this.toRestore?.claim(lesson.family, lesson.octets, lesson.offset)
    const before = this.#ipcache.asker
    this.#ipcache.asker = lesson.endpoint
    const row = this.#learn(lesson)
    this.#ipcache.asker = before
    this.eviction.trim()
    if (row === 0) this.#boundHits++
    return row
  }

  #learn(lesson: Lesson): number {
    const knownName = this.names.rowOf(lesson.name)
    const known = knownName === 0 ? 0 : this.#known.lookUp(knownName, lesson)
    if (known === 0 && !this.eviction.make(lesson)) return 0
    const name = this.rows.holdName(lesson.name)
    if (name === 0) return 0
    const mapping = this.rows.holdMapping(name, lesson)
    if (mapping === 0) {
      this.rows.dropIdleName(name)
      return 0
    }
    const entry = this.#holdEntry(mapping, known, lesson)
    if (entry === 0) {
      this.rows.dropIdleMapping(mapping)
      return 0
    }
    this.#prolong(entry, lesson)
    return this.#rowOf(entry, mapping)
  }

  /**
   * Returns the row of a known name whose labels are up to date, and 0 for any other name. The learner calls this once per answer and
   * gives the row to `renew`. The row is valid until a name is removed.
   */
  findCurrent(name: NameKey): number {
    const row = this.names.rowOf(name)
    return row !== 0 && this.names.epoch[row] === this.#labeller.epoch ? row : 0
  }

  /**
   * Does the work of `learn` for a known entry; nearly every answer is for one. `name` is the row that `findCurrent` returned. Returns
   * the same row as `learn`, or 0 if the caller has to call `learn`. A walk along the lists of the name touches a third of the memory
   * that lookups of address, mapping and entry in their tables touch. With 20,000 names this saves 1.0 us per answer.
   */
  renew(name: number, lesson: Lesson): number {
    const entry = this.#known.find(name, lesson)
    if (entry === 0) return 0
    const mapping = this.entries.mapping[entry]!
    if (!this.labels.relabelMapping(mapping) || !this.labels.relabelEntry(entry)) return 0
    this.#prolong(entry, lesson)
    return this.#rowOf(entry, mapping)
  }

  /** Removes one entry. Then removes its mapping and fact if no entry is left, and its name if no mapping is left. */
  forget(entry: number): void {
    const mapping = this.entries.mapping[entry]!
    this.wheel.remove(entry)
    this.#ledger?.removed(entry)
    this.rows.removeEntry(entry)
    this.rows.dropIdleMapping(mapping)
  }

  /** Removes all entries of an address, which names no longer open. */
  forgetAddress(family: Family, octets: Uint8Array): void {
    const prefix = this.#ipcache.prefixes.find(family, octets, 0, widthOf(family))
    if (prefix === 0) return
    const { mappings, entries } = this
    for (let mapping = mappings.firstOfPrefix[prefix]!; mapping !== 0;) {
      const next = mappings.nextOfPrefix[mapping]!
      for (let entry = mappings.firstEntry[mapping]!; entry !== 0;) {
        const following = entries.nextOfMapping[entry]!
        this.forget(entry)
        entry = following
      }
      mapping = next
    }
  }

  /**
   * Sets whether every address that the endpoint learns gets the label `reserved:named` in the endpoint's own scope. New answers follow
   * the setting at once. `Relabel` applies it to the addresses that the endpoint learned before.
   */
  setNamed(endpoint: EndpointId, named: boolean): void {
    if (this.scopes.setNamed(endpoint, named) && this.rows.orders.firstOf(endpoint) !== 0) {
      this.scopes.begin()
    }
  }

  stateOf(entry: number): EntryState {
    const now = this.tick()
    if (now <= this.entries.liveUntil[entry]!) return 'live'
    const past = now >= this.entries.dueAt(entry)
    return past && this.entries.connected[entry] !== 0 ? 'connected' : 'grace'
  }

  /** Counts an address that could not get its labels because a table is full. */
  countUnlabelled(): void {
    this.#boundHits++
  }

  /** Gives an entry the lifetime of a lesson. An entry in the wheel keeps its place there; `Expiry` finds it too early and moves it. */
  #prolong(entry: number, { liveUntil, grace, now }: Lesson): void {
    const { entries } = this
    this.rows.touch(entry, now)
    if (liveUntil > entries.liveUntil[entry]!) entries.liveUntil[entry] = liveUntil
    if (grace !== GRACE_AS_IT_IS) this.#setGrace(entry, grace)
    this.#ledger?.prolonged(entry, liveUntil)
    if (this.wheel.has(entry)) return
    this.wheel.place(entry, entries.dueAt(entry))
  }

  #setGrace(entry: number, grace: number): void {
    const before = this.entries.grace[entry]!
    if (grace === before) return
    this.entries.grace[entry] = grace
    this.#ledger?.changed(entry)
    // With a shorter grace the place in the wheel is too late. The entry leaves it, and `#prolong` places the entry anew.
    if (grace > before) return
    this.wheel.remove(entry)
    this.rows.orders.changed(entry)
  }

  #holdEntry(mapping: number, known: number, lesson: Lesson): number {
    if (known !== 0) return this.labels.relabelEntry(known) ? known : 0
    const row = this.rows.addEntry(mapping, lesson.endpoint, lesson.now, this.graceSeconds)
    if (row === 0) return 0
    this.entries.learnedAt[row] = lesson.learnedAt ?? this.#clock.now()
    this.#ledger?.changed(row)
    return row
  }

  /** Returns the row of the endpoint's own view of the address, or the node's row when the endpoint has no own view. */
  #rowOf(entry: number, mapping: number): number {
    const { scoped } = this.#ipcache.prefixes
    return scoped.viewOf(this.entries.endpoint[entry]!, this.mappings.prefix[mapping]!)
  }
}
