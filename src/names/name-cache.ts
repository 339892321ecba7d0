// The name cache knows what names resolve to. Each entry (endpoint, name, address) has a lifetime. The IPCache gets a fact with the
// labels of all FQDN selectors that match the name: one per (name, address) for the node, or with `learning: endpoint` one in the
// scope of each endpoint that asked. Every answer to a known endpoint is kept, even when no selector matches yet, so that a selector
// added later applies to it.
//
// Written by the pipeline (`renew`, `learn`), by expiry (`forget`) and by relabelling, all in one thread. A known answer costs one
// table probe, for the name; its lists lead to address and entry. At a bound something else is evicted first (eviction/), but never
// an entry of the same batch of answers.

import type { Clock } from '../core/clock.ts'
import type { EndpointId } from '../core/ids.ts'
import type { Family } from '../core/ip.ts'
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

/** An entry is one (endpoint, name, address). */
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
  /** Decides which addresses get no labels from names, or only from some. Absent: none is guarded. */
  readonly guard?: Pick<Guard, 'levelOf'> | undefined
  /** Notes the entries that need a record. Absent: nothing is saved. */
  readonly ledger?: EntryLedger | undefined
}

/** The part of a restart that answers have to wait for. */
export interface ToRestore {
  /** Brings back everything that was known of an address. */
  claim(family: Family, octets: Uint8Array, offset: number): void
}

/** Milliseconds of a clock tick of lifetimes. */
const TICK_MS = 1000
/** Open peers have rows for so many endpoints with the most connections, however few names these have. */
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
  /** Set by a restart. `learn` claims an address here first, so that the address has all its labels at once. */
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

  /** Begins the next batch of answers. Entries learned since the last call are not evicted before the next one. */
  begin(): void {
    this.rows.begin()
  }

  /** The present second. */
  tick(): number {
    return Math.floor(this.#clock.now() / TICK_MS)
  }

  /** How often a bound kept an address from being learned or labelled. */
  get boundHits(): number {
    return this.#boundHits
  }

  /**
   * Takes in one address of an answer. Returns the row in the IPCache by which the endpoint sees the address. Returns 0 when a
   * bound left the address out: then nothing was changed.
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
   * The row of a known name whose labels are up to date, 0 for any other name. The learner calls it once an answer, for
   * `renew`. The row is valid until names change.
   */
  findCurrent(name: NameKey): number {
    const row = this.names.rowOf(name)
    return row !== 0 && this.names.epoch[row] === this.#labeller.epoch ? row : 0
  }

  /**
   * `learn` for a known entry, which nearly every answer brings. Returns the same row as `learn`, or 0 when `learn` has to do
   * it; then nothing was changed. Going along the lists of the name touches a third of the memory that looking up address,
   * mapping and entry in their tables does (20,000 names: 1.0 us less an answer).
   */
  renew(name: number, lesson: Lesson): number {
    const entry = this.#known.find(name, lesson)
    if (entry === 0) return 0
    const mapping = this.entries.mapping[entry]!
    if (!this.labels.relabelMapping(mapping) || !this.labels.relabelEntry(entry)) return 0
    this.#prolong(entry, lesson)
    return this.#rowOf(entry, mapping)
  }

  /** Forgets one entry. The last entry takes its mapping, fact and name along. */
  forget(entry: number): void {
    const mapping = this.entries.mapping[entry]!
    this.wheel.remove(entry)
    this.#ledger?.removed(entry)
    this.rows.removeEntry(entry)
    this.rows.dropIdleMapping(mapping)
  }

  /** Sets whether addresses that the endpoint learns are labelled as named. Those it knows already follow in `Relabel`. */
  setNamed(endpoint: EndpointId, named: boolean): void {
    if (this.scopes.setNamed(endpoint, named) && this.rows.orders.firstOf(endpoint) !== 0) {
      this.scopes.begin()
    }
  }

  stateOf(entry: number): EntryState {
    const now = this.tick()
    if (now <= this.entries.liveUntil[entry]!) return 'live'
    const past = now > this.entries.liveUntil[entry]! + this.entries.grace[entry]!
    return past && this.entries.connected[entry] !== 0 ? 'connected' : 'grace'
  }

  /** Counts an address that stays without its labels, because a table is full. */
  countUnlabelled(): void {
    this.#boundHits++
  }

  /** An entry that lives longer stays where it is in the wheel. `Expiry` finds it there and moves it then. */
  #prolong(entry: number, { liveUntil, grace, now }: Lesson): void {
    const { entries } = this
    this.rows.touch(entry, now)
    if (liveUntil > entries.liveUntil[entry]!) entries.liveUntil[entry] = liveUntil
    if (grace !== GRACE_AS_IT_IS) this.#setGrace(entry, grace)
    this.#ledger?.prolonged(entry, liveUntil)
    if (this.wheel.has(entry)) return
    this.wheel.place(entry, entries.liveUntil[entry]! + entries.grace[entry]! + 1)
  }

  #setGrace(entry: number, grace: number): void {
    const before = this.entries.grace[entry]!
    if (grace === before) return
    this.entries.grace[entry] = grace
    this.#ledger?.changed(entry)
    // With a shorter grace the entry must leave its place in the wheel.
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

  /** The endpoint's own view of the address, else the node's. */
  #rowOf(entry: number, mapping: number): number {
    const { scoped } = this.#ipcache.prefixes
    return scoped.viewOf(this.entries.endpoint[entry]!, this.mappings.prefix[mapping]!)
  }
}
