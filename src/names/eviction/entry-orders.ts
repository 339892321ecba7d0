// EntryOrders keeps the order in which eviction removes entries at a bound (docs/spec/semantics 6):
//   endpoint or use   Entries without an open connection come first, entries with one last. Within each of these two groups, entries
//                     of exact names come last. Among entries without a connection, those that never had one come first, the soonest
//                     to expire before the others. Those that had one follow, by the time when their last connection ended.
//   address           The endpoint with the most names on the address loses the entry whose name it asked longest ago. Entries of
//                     exact names come last.
// The orders are heaps over the rows of the entry table. Most uses and addresses have few entries; they get a heap only when they are
// large. The name cache updates the orders when an entry is added or removed, and when its connection opens or ends. An answer for a
// known entry does not change the orders. docs/decisions/0033 says why the order is exact.

import { int32Column } from '../../core/tables/columns.ts'
import { KeyHeap } from '../../core/tables/key-heap.ts'
import { Slots } from '../../core/tables/slots.ts'
import type { MappingTable } from '../tables/mapping-table.ts'
import type { EntryTable } from '../tables/entry-table.ts'
import type { UseTable } from '../tables/use-table.ts'
import { CONNECTED, HELD, type Candidates } from './candidates.ts'

/** Smaller keys: entries that never had a connection, by their expiry. This key or more: entries that had one, by its end. */
const WAS_CONNECTED = 2 ** 28
/** Added to the key of every entry whose name is exact. */
const EXACT = 2 ** 29
/** A use with this many entries, or an address with this many names, has a heap. */
export const LARGE = 64

export interface EntryOrdersOptions {
  readonly entries: EntryTable
  readonly uses: UseTable
  readonly mappings: MappingTable
  readonly candidates: Candidates
  /** Returns true if the present batch needs the entry. */
  readonly isHeld: (entry: number) => boolean
  /** Returns true if a selector without a star matches the entry's name. */
  readonly isExact: (entry: number) => boolean
  readonly capacity: number
}

interface EndpointEntries {
  readonly entries: KeyHeap
  /** The endpoint's row in `#ranks`. */
  readonly rank: number
}

export class EntryOrders {
  readonly #options: EntryOrdersOptions
  readonly #ofEndpoint = new Map<number, EndpointEntries>()
  readonly #places: {
    readonly endpoint: Int32Array
    readonly use: Int32Array
    readonly address: Int32Array
  }
  /** Endpoints by their number of entries. The endpoint with the most is on top. */
  readonly #ranks: KeyHeap
  readonly #rankSlots: Slots
  readonly #endpointOfRank: number[] = [0]
  readonly #ofUse = new Map<number, KeyHeap>()
  /** Row of the address -> endpoint -> the endpoint's entries on the address. */
  readonly #ofAddress = new Map<number, Map<number, KeyHeap>>()
  readonly #byLife = (entry: number): number => this.#lifeKey(entry)
  readonly #byAsked = (entry: number): number => this.#askedKey(entry)

  constructor(options: EntryOrdersOptions) {
    const rows = options.capacity + 1
    this.#options = options
    this.#places = {
      endpoint: int32Column(rows),
      use: int32Column(rows),
      address: int32Column(rows),
    }
    this.#ranks = new KeyHeap(int32Column(rows))
    this.#rankSlots = new Slots(options.capacity)
  }

  /** Returns how many entries an endpoint has. */
  count(endpoint: number): number {
    return this.#ofEndpoint.get(endpoint)?.entries.count ?? 0
  }

  /** Returns any entry of an endpoint, 0 when the endpoint has none. */
  firstOf(endpoint: number): number {
    return this.#ofEndpoint.get(endpoint)?.entries.top ?? 0
  }

  /** The endpoint with the most entries, 0 when there are no entries. */
  get largestEndpoint(): number {
    return this.#endpointOfRank[this.#ranks.top] ?? 0
  }

  /** True when any use or address is large enough to have a heap. */
  get hasLarge(): boolean {
    return this.#ofUse.size + this.#ofAddress.size > 0
  }

  /** Call after the entry was linked in all tables. */
  add(entry: number): void {
    const { entries, uses } = this.#options
    const key = this.#realLifeKey(entry)
    const endpoint = this.#endpoint(entries.endpoint[entry]!)
    endpoint.entries.add(entry, key)
    this.#ranks.set(endpoint.rank, -endpoint.entries.count)
    const use = entries.use[entry]!
    if (uses.entries[use]! >= LARGE) this.#addToUse(use, entry, key)
    this.#addToAddress(entry)
  }

  /** Call before the entry is unlinked from any table. */
  remove(entry: number): void {
    const { entries, mappings } = this.#options
    const id = entries.endpoint[entry]!
    const endpoint = this.#endpoint(id)
    endpoint.entries.remove(entry)
    if (endpoint.entries.count > 0) this.#ranks.set(endpoint.rank, -endpoint.entries.count)
    else this.#forgetEndpoint(id, endpoint.rank)
    if (this.#places.use[entry] !== 0) this.#removeFromUse(entries.use[entry]!, entry)
    if (this.#places.address[entry] !== 0) {
      this.#removeFromAddress(mappings.prefix[entries.mapping[entry]!]!, id, entry)
    }
  }

  /** Call when a connection of the entry opened or ended, or when the entry now ends earlier than before. */
  changed(entry: number): void {
    const { entries } = this.#options
    const key = this.#realLifeKey(entry)
    this.#ofEndpoint.get(entries.endpoint[entry]!)?.entries.set(entry, key)
    if (this.#places.use[entry] !== 0) this.#ofUse.get(entries.use[entry]!)?.set(entry, key)
  }

  /** Returns the entry of an endpoint to remove first, 0 when none can be removed. */
  candidateOfEndpoint(endpoint: number): number {
    const known = this.#ofEndpoint.get(endpoint)
    return known === undefined ? 0 : this.#options.candidates.find(known.entries, this.#byLife)
  }

  /** Returns the entry of a use to remove first, 0 when none can be removed. */
  candidateOfUse(use: number): number {
    const heap = this.#ofUse.get(use)
    if (heap !== undefined) return this.#options.candidates.find(heap, this.#byLife)
    const { firstEntry } = this.#options.uses
    let [candidate, least] = [0, HELD]
    for (
      let entry = firstEntry[use]!;
      entry !== 0;
      entry = this.#options.entries.nextOfUse[entry]!
    ) {
      const key = this.#lifeKey(entry)
      if (key < least) [candidate, least] = [entry, key]
    }
    return candidate
  }

  /** Returns the entry on an address to remove first, 0 when none can be removed. */
  candidateOfAddress(prefix: number): number {
    let largest: KeyHeap | undefined
    for (const heap of this.#crowdOf(prefix).values()) {
      if (largest === undefined || heap.count > largest.count) largest = heap
    }
    return largest === undefined ? 0 : this.#options.candidates.find(largest, this.#byAsked)
  }

  #lifeKey(entry: number): number {
    return this.#options.isHeld(entry) ? HELD : this.#realLifeKey(entry)
  }

  #realLifeKey(entry: number): number {
    const { entries, isExact } = this.#options
    const due = Math.min(entries.liveUntil[entry]! + entries.grace[entry]!, WAS_CONNECTED - 1)
    const exact = isExact(entry) ? EXACT : 0
    if (entries.connected[entry] !== 0) return CONNECTED + exact + due
    const ended = entries.lastConnected[entry]!
    return exact + (ended === 0 ? due : WAS_CONNECTED + ended)
  }

  #askedKey(entry: number): number {
    return this.#options.isHeld(entry) ? HELD : this.#realAskedKey(entry)
  }

  #realAskedKey(entry: number): number {
    const { entries, uses, isExact } = this.#options
    return uses.asked[entries.use[entry]!]! + (isExact(entry) ? EXACT : 0)
  }

  #endpoint(id: number): EndpointEntries {
    const known = this.#ofEndpoint.get(id)
    if (known !== undefined) return known
    const rank = this.#rankSlots.take()
    const made = { entries: new KeyHeap(this.#places.endpoint), rank }
    this.#endpointOfRank[rank] = id
    this.#ranks.add(rank, 0)
    this.#ofEndpoint.set(id, made)
    return made
  }

  #forgetEndpoint(id: number, rank: number): void {
    this.#ofEndpoint.delete(id)
    this.#ranks.remove(rank)
    this.#rankSlots.free(rank)
  }

  #addToUse(use: number, entry: number, key: number): void {
    const known = this.#ofUse.get(use)
    if (known !== undefined) {
      known.add(entry, key)
      return
    }
    const heap = new KeyHeap(this.#places.use)
    this.#ofUse.set(use, heap)
    const { uses, entries } = this.#options
    for (let each = uses.firstEntry[use]!; each !== 0; each = entries.nextOfUse[each]!) {
      heap.add(each, this.#realLifeKey(each))
    }
  }

  #removeFromUse(use: number, entry: number): void {
    const heap = this.#ofUse.get(use)
    heap?.remove(entry)
    if (heap?.count === 0) this.#ofUse.delete(use)
  }

  #addToAddress(entry: number): void {
    const { entries, mappings } = this.#options
    const prefix = mappings.prefix[entries.mapping[entry]!]!
    const crowd = this.#ofAddress.get(prefix)
    if (crowd !== undefined) this.#addToCrowd(crowd, entry)
    else if (mappings.countOfPrefix[prefix]! >= LARGE) this.#crowdOf(prefix)
  }

  /** Returns the entries of all endpoints on an address. The first call for an address builds their heaps. */
  #crowdOf(prefix: number): Map<number, KeyHeap> {
    const known = this.#ofAddress.get(prefix)
    if (known !== undefined) return known
    const crowd = new Map<number, KeyHeap>()
    const { mappings, entries } = this.#options
    for (let m = mappings.firstOfPrefix[prefix]!; m !== 0; m = mappings.nextOfPrefix[m]!) {
      for (
        let entry = mappings.firstEntry[m]!;
        entry !== 0;
        entry = entries.nextOfMapping[entry]!
      ) {
        this.#addToCrowd(crowd, entry)
      }
    }
    this.#ofAddress.set(prefix, crowd)
    return crowd
  }

  #addToCrowd(crowd: Map<number, KeyHeap>, entry: number): void {
    const endpoint = this.#options.entries.endpoint[entry]!
    let heap = crowd.get(endpoint)
    if (heap === undefined) crowd.set(endpoint, (heap = new KeyHeap(this.#places.address)))
    heap.add(entry, this.#realAskedKey(entry))
  }

  #removeFromAddress(prefix: number, endpoint: number, entry: number): void {
    const crowd = this.#ofAddress.get(prefix)
    const heap = crowd?.get(endpoint)
    heap?.remove(entry)
    if (heap?.count === 0) crowd?.delete(endpoint)
    if (crowd?.size === 0) this.#ofAddress.delete(prefix)
  }
}
