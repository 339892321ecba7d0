// EntryTable holds the entries (mapping, endpoint). An entry says that the endpoint learned the mapping's address by the mapping's name,
// and until when. Each entry is in two lists. The list of its mapping shows whether any endpoint still has the mapping. The list of its
// use (endpoint, name) lets an endpoint forget a name without looking at entries of other endpoints. An entry of an endpoint with its
// own view of addresses also has a fact. The first entry of a mapping is found from the mapping and is in no index, because most mappings
// have only one entry. The typed arrays need about 60 octets per entry.

import { float64Column, int32Column, uint8Column } from '../../core/tables/columns.ts'
import { OwnedRows } from '../../core/tables/owned-rows.ts'
import { RowLists } from '../../core/tables/row-lists.ts'
import { put, Slots } from '../../core/tables/slots.ts'

export class EntryTable {
  readonly slots: Slots
  readonly mapping: Int32Array
  readonly endpoint: Int32Array
  /** Last tick of the TTL. */
  readonly liveUntil: Int32Array
  /** `Clock.now()` when the answer that made the entry arrived. LEARNED_BEFORE for an entry of an earlier process. */
  readonly learnedAt: Float64Array
  /** Ticks from `liveUntil` to the end of the entry. */
  readonly grace: Int32Array
  readonly #ofMapping: OwnedRows
  readonly nextOfMapping: Int32Array
  /** Row of the fact in the endpoint's own scope, 0 when there is none. */
  readonly fact: Int32Array
  /** 1 while the endpoint has an open connection to the address, as of the last look at the connections. */
  readonly connected: Uint8Array
  /** Tick at which a look found the last connection ended. 0 when no connection has ended. */
  readonly lastConnected: Int32Array
  /** The use (endpoint, name) of the entry. */
  readonly use: Int32Array
  readonly #ofUse: RowLists
  readonly nextOfUse: Int32Array

  /** `firstOfMapping`, `firstOfUse`: columns of the mappings and of the uses, which this table writes. */
  constructor(options: {
    readonly capacity: number
    readonly firstOfMapping: Int32Array
    readonly firstOfUse: Int32Array
  }) {
    const rows = options.capacity + 1
    this.slots = new Slots(options.capacity)
    this.mapping = int32Column(rows)
    this.endpoint = int32Column(rows)
    this.liveUntil = int32Column(rows)
    this.learnedAt = float64Column(rows)
    this.grace = int32Column(rows)
    this.fact = int32Column(rows)
    this.connected = uint8Column(rows)
    this.lastConnected = int32Column(rows)
    this.use = int32Column(rows)
    const { capacity, firstOfMapping: first } = options
    this.#ofMapping = new OwnedRows({ capacity, first, owner: this.mapping, key: this.endpoint })
    this.nextOfMapping = this.#ofMapping.next
    this.#ofUse = new RowLists({ rows: capacity, first: options.firstOfUse })
    this.nextOfUse = this.#ofUse.next
  }

  /** The first tick after the TTL and the grace of an entry. */
  dueAt(entry: number): number {
    return this.liveUntil[entry]! + this.grace[entry]! + 1
  }

  find(mapping: number, endpoint: number): number {
    return this.#ofMapping.find(mapping, endpoint)
  }

  /** Adds an unknown entry. Returns its row, or 0 when the table is full. */
  add(mapping: number, endpoint: number): number {
    const row = this.slots.take()
    if (row === 0) return 0
    this.mapping[row] = mapping
    this.endpoint[row] = endpoint
    this.connected[row] = 0
    put(this.lastConnected, row, 0)
    this.#ofMapping.add(row)
    return row
  }

  /** Removes an entry that `unlinkFromUse` has taken out of its use's list. */
  remove(row: number): void {
    this.#ofMapping.remove(row)
    this.mapping[row] = 0
    this.slots.free(row)
  }

  isUsed(row: number): boolean {
    return this.mapping[row] !== 0
  }

  /** Puts an entry in front of its use's list. */
  linkToUse(row: number, use: number): void {
    this.use[row] = use
    this.#ofUse.add(use, row)
  }

  /** Takes an entry out of its use's list. */
  unlinkFromUse(row: number): void {
    this.#ofUse.remove(this.use[row]!, row)
  }
}
