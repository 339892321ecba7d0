// EntryRows creates and removes rows of names, mappings, uses and entries. With each row it creates or removes the row's facts in the
// IPCache, its references to label sets and its places in the orders of eviction. A new row is linked everywhere or nowhere. Only the
// name cache and expiry change rows here.

import type { EndpointId } from '../../core/ids.ts'
import type { LabelSets } from '../../core/labels.ts'
import type { IpCache } from '../../ipcache/ipcache.ts'
import { BatchMarks, Candidates } from '../eviction/candidates.ts'
import { OpenPeers } from '../expiry/open-peers.ts'
import { FactLabels, type NameLabeller } from '../labels/fact-labels.ts'
import { UNGUARDED, type Guard } from '../guard.ts'
import { LabelKinds } from '../eviction/label-kinds.ts'
import { NOT_CHECKED, type Lesson } from '../lesson.ts'
import { MappingTable } from './mapping-table.ts'
import type { NameScopes } from '../name-scopes.ts'
import { NameTable, type NameKey } from './name-table.ts'
import { EntryOrders } from '../eviction/entry-orders.ts'
import { EntryTable } from './entry-table.ts'
import { UseTable } from './use-table.ts'
import { WildcardNames, type WildcardBounds } from '../eviction/wildcard-names.ts'

export interface EntryRowsOptions {
  readonly ipcache: IpCache
  readonly labelSets: LabelSets
  readonly labeller: NameLabeller
  readonly scopes: NameScopes
  /** Absent: no address is guarded. */
  readonly guard?: Pick<Guard, 'levelOf'> | undefined
  /** `limits.pairs`. */
  readonly capacity: number
  readonly wildcards: WildcardBounds
  /** The most open peers. */
  readonly openPeers: number
}

/** The end of the TTL of a new entry, until the answer sets it. It is earlier than every tick. */
const NEVER = -0x8000_0000

export class EntryRows {
  readonly names: NameTable
  readonly mappings: MappingTable
  readonly uses: UseTable
  readonly entries: EntryTable
  readonly openPeers: OpenPeers
  readonly labels: FactLabels
  readonly orders: EntryOrders
  readonly wildcards: WildcardNames
  /** Called before a mapping is removed, with the next mapping of its address. A walk that stands on the mapping moves to the next. */
  onMappingGone: (mapping: number, nextOfAddress: number) => void = () => undefined
  readonly #heldEntries: BatchMarks
  readonly #heldUses: BatchMarks
  readonly #candidates = new Candidates()
  readonly #ipcache: IpCache
  readonly #sets: LabelSets
  readonly #guard: EntryRowsOptions['guard']

  constructor(options: EntryRowsOptions) {
    const { capacity, ipcache, labelSets } = options
    this.#guard = options.guard
    this.#ipcache = ipcache
    this.#sets = labelSets
    this.names = new NameTable({ capacity })
    const prefixCapacity = ipcache.prefixes.slots.capacity
    const { firstMapping, firstUse } = this.names
    this.mappings = new MappingTable({ capacity, prefixCapacity, firstOfName: firstMapping })
    this.uses = new UseTable({ capacity, firstOfName: firstUse })
    this.entries = new EntryTable({
      capacity,
      firstOfMapping: this.mappings.firstEntry,
      firstOfUse: this.uses.firstEntry,
    })
    this.openPeers = new OpenPeers({ capacity: options.openPeers })
    this.#heldEntries = new BatchMarks({ capacity })
    this.#heldUses = new BatchMarks({ capacity })
    const { names, mappings, uses, entries } = this
    const candidates = this.#candidates
    const kinds = new LabelKinds(labelSets)
    this.orders = new EntryOrders({
      entries,
      uses,
      mappings,
      candidates,
      isHeld: (entry) => this.#heldEntries.has(entry),
      isExact: (entry) => kinds.isExact(names.labels[uses.name[entries.use[entry]!]!]!),
      capacity,
    })
    this.wildcards = new WildcardNames({
      uses,
      labelSets,
      kinds,
      candidates,
      bounds: options.wildcards,
      isHeld: (use) => this.#heldUses.has(use),
    })
    const { wildcards } = this
    this.labels = new FactLabels({ ...options, names, mappings, uses, entries, wildcards })
  }

  /** Begins the next batch of answers. Eviction can now remove entries of the batch before. */
  begin(): void {
    this.#heldEntries.begin()
    this.#heldUses.begin()
    this.#candidates.release()
  }

  /** Notes that an answer of the present batch contains the entry. `now` is a tick. */
  touch(entry: number, now: number): void {
    const use = this.entries.use[entry]!
    this.uses.asked[use] = now
    this.#heldEntries.mark(entry)
    this.#heldUses.mark(use)
  }

  /** Returns the row of a name, with labels up to date. Creates a missing row. Returns 0 when the table is full. */
  holdName(key: NameKey): number {
    const known = this.names.rowOf(key)
    const row = known === 0 ? this.names.add(key) : known
    if (row === 0) return 0
    if (known === 0) this.names.epoch[row] = -1
    this.labels.relabelName(row, key)
    return row
  }

  /** Returns the mapping of a name and a lesson's address, with its fact. Creates a missing one. Returns 0 when a table is full. */
  holdMapping(name: number, lesson: Lesson): number {
    const { family, octets, offset } = lesson
    const prefix = this.#ipcache.holdAddress(family, octets, offset)
    if (prefix === 0) return 0
    const known = this.mappings.find(name, prefix)
    if (known !== 0) {
      this.#ipcache.dropRow(prefix)
      return this.labels.relabelMapping(known) ? known : 0
    }
    const row = this.mappings.add(name, prefix)
    if (row === 0) {
      this.#ipcache.dropRow(prefix)
      return 0
    }
    this.names.mappings[name]!++
    if (lesson.guarded === NOT_CHECKED) {
      lesson.guarded = this.#guard?.levelOf(family, octets, offset) ?? UNGUARDED
    }
    this.mappings.guarded[row] = lesson.guarded
    if (this.labels.relabelMapping(row)) return row
    this.dropIdleMapping(row)
    return 0
  }

  /** Adds an unknown entry with `grace` in seconds. The caller sets its TTL. Returns the row, or 0 when a table is full. */
  addEntry(mapping: number, endpoint: EndpointId, now: number, grace: number): number {
    const { mappings, entries } = this
    const row = entries.add(mapping, endpoint)
    if (row === 0) return 0
    entries.liveUntil[row] = NEVER
    entries.grace[row] = grace
    const use = this.#holdUse(endpoint, mappings.name[mapping]!, now)
    entries.linkToUse(row, use)
    this.uses.entries[use]!++
    this.orders.add(row)
    if (this.openPeers.has(endpoint, mappings.prefix[mapping]!)) this.setConnected(row, true, now)
    if (this.labels.relabelEntry(row)) return row
    this.removeEntry(row)
    return 0
  }

  /** Notes whether the endpoint has an open connection to the entry's address. Returns true if this is a change. `now` is a tick. */
  setConnected(entry: number, connected: boolean, now: number): boolean {
    const { entries, uses, wildcards } = this
    if ((entries.connected[entry] !== 0) === connected) return false
    entries.connected[entry] = connected ? 1 : 0
    if (!connected) entries.lastConnected[entry] = now
    const use = entries.use[entry]!
    uses.connected[use]! += connected ? 1 : -1
    if (uses.connected[use] === (connected ? 1 : 0)) wildcards.connectedChanged(use)
    this.orders.changed(entry)
    return true
  }

  /** Removes an entry, and its use if the use has no other entry. The mapping stays. */
  removeEntry(entry: number): void {
    const { entries, uses } = this
    const fact = entries.fact[entry]!
    if (fact !== 0) this.labels.dropFact(entry, fact)
    if (entries.connected[entry] !== 0) this.setConnected(entry, false, 0)
    this.orders.remove(entry)
    const use = entries.use[entry]!
    entries.unlinkFromUse(entry)
    this.#heldEntries.clear(entry)
    if (--uses.entries[use]! === 0) {
      this.wildcards.leave(use)
      this.#heldUses.clear(use)
      uses.remove(use)
    }
    entries.remove(entry)
  }

  /** Removes a mapping if it has no entries, and then its name if the name has no other mapping. */
  dropIdleMapping(mapping: number): void {
    if (this.mappings.firstEntry[mapping] !== 0) return
    const name = this.mappings.name[mapping]!
    const fact = this.mappings.fact[mapping]!
    const prefix = this.mappings.prefix[mapping]!
    this.onMappingGone(mapping, this.mappings.nextOfPrefix[mapping]!)
    if (fact !== 0) this.#ipcache.removeFact(fact)
    this.mappings.fact[mapping] = 0
    this.mappings.remove(mapping)
    this.names.mappings[name]!--
    this.#ipcache.dropRow(prefix)
    this.dropIdleName(name)
  }

  /** Removes a name if it has no mappings. */
  dropIdleName(name: number): void {
    if (this.names.mappings[name] !== 0 || !this.names.isUsed(name)) return
    this.#sets.release(this.names.labels[name]!)
    this.names.remove(name)
  }

  #holdUse(endpoint: EndpointId, name: number, now: number): number {
    const { uses, names } = this
    const known = uses.find(endpoint, name)
    if (known !== 0) return known
    const use = uses.add(endpoint, name)
    uses.asked[use] = now
    this.wildcards.join(use, names.labels[name]!)
    return use
  }
}
