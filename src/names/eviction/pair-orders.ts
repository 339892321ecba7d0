// Who goes first at a bound, of the pairs of one endpoint, of one use (endpoint, name) and of one address (docs/spec/semantics 6):
//   of an endpoint or a use   the least recently connected, not connected, soonest to expire;
//   of an address             from the endpoint with the most names there, the name asked longest ago.
// Either way pairs of exact names go behind those of others.
// Heaps over the rows of the pair table. Most uses and addresses have a few pairs; they get a heap when they grow large.
// Written by the name cache with every pair that comes, goes, or whose connection opens or ends; answers don't come here.

import { KeyHeap } from '../../core/tables/key-heap.ts'
import { Slots } from '../../core/tables/slots.ts'
import type { MappingTable } from '../tables/mapping-table.ts'
import type { PairTable } from '../tables/pair-table.ts'
import type { UseTable } from '../tables/use-table.ts'
import { CONNECTED, HELD, type Victims } from './victims.ts'

/** Keys from here on: pairs that were under a connection once, by when it ended. Below: by when they expire. */
const WAS_CONNECTED = 2 ** 28
/** Added to the keys of pairs that stand under no connection, and of those that do, when their names are exact. */
const EXACT = 2 ** 29
/** Pairs of a use, names of an address, from which on they have a heap. */
export const LARGE = 64

export interface PairOrdersOptions {
  readonly pairs: PairTable
  readonly uses: UseTable
  readonly mappings: MappingTable
  readonly victims: Victims
  /** Whether the batch at hand needs a pair. */
  readonly isHeld: (pair: number) => boolean
  /** Whether a selector without a star matches a pair's name. */
  readonly isExact: (pair: number) => boolean
  readonly capacity: number
}

interface EndpointPairs {
  readonly pairs: KeyHeap
  /** Its row in the order of how many pairs endpoints have. */
  readonly rank: number
}

export class PairOrders {
  readonly #in: PairOrdersOptions
  readonly #ofEndpoint = new Map<number, EndpointPairs>()
  readonly #places: {
    readonly endpoint: Int32Array
    readonly use: Int32Array
    readonly address: Int32Array
  }
  /** Endpoints, the one with the most pairs on top. */
  readonly #ranks: KeyHeap
  readonly #rankSlots: Slots
  readonly #endpointOfRank: number[] = [0]
  readonly #ofUse = new Map<number, KeyHeap>()
  /** Row of the address -> endpoint -> its pairs there. */
  readonly #ofAddress = new Map<number, Map<number, KeyHeap>>()
  readonly #byLife = (pair: number): number => this.#lifeKey(pair)
  readonly #byAsked = (pair: number): number => this.#askedKey(pair)

  constructor(options: PairOrdersOptions) {
    const rows = options.capacity + 1
    this.#in = options
    this.#places = {
      endpoint: new Int32Array(rows),
      use: new Int32Array(rows),
      address: new Int32Array(rows),
    }
    this.#ranks = new KeyHeap(new Int32Array(rows))
    this.#rankSlots = new Slots(options.capacity)
  }

  /** Pairs of an endpoint. */
  count(endpoint: number): number {
    return this.#ofEndpoint.get(endpoint)?.pairs.count ?? 0
  }

  /** Some pair of an endpoint, 0 when it has none. */
  firstOf(endpoint: number): number {
    return this.#ofEndpoint.get(endpoint)?.pairs.top ?? 0
  }

  /** The endpoint with the most pairs, 0 when there are none. */
  get largestEndpoint(): number {
    return this.#endpointOfRank[this.#ranks.top] ?? 0
  }

  /** Whether any use or address has so many that it has a heap. */
  get hasLarge(): boolean {
    return this.#ofUse.size + this.#ofAddress.size > 0
  }

  /** Addresses of the use that has most, when it is a large one. */
  get largestUse(): number {
    let most = 0
    for (const heap of this.#ofUse.values()) most = Math.max(most, heap.count)
    return most
  }

  /** Names of the address that has most, when it is a large one. */
  get largestAddress(): number {
    let most = 0
    for (const prefix of this.#ofAddress.keys())
      most = Math.max(most, this.#in.mappings.countOfPrefix[prefix]!)
    return most
  }

  /** The pair is linked everywhere. */
  add(pair: number): void {
    const { pairs, uses } = this.#in
    const key = this.#realLifeKey(pair)
    const endpoint = this.#endpoint(pairs.endpoint[pair]!)
    endpoint.pairs.add(pair, key)
    this.#ranks.set(endpoint.rank, -endpoint.pairs.count)
    const use = pairs.use[pair]!
    if (uses.pairs[use]! >= LARGE) this.#addToUse(use, pair, key)
    this.#addToAddress(pair)
  }

  /** Before the pair is unlinked anywhere. */
  remove(pair: number): void {
    const { pairs, mappings } = this.#in
    const id = pairs.endpoint[pair]!
    const endpoint = this.#endpoint(id)
    endpoint.pairs.remove(pair)
    if (endpoint.pairs.count > 0) this.#ranks.set(endpoint.rank, -endpoint.pairs.count)
    else this.#forgetEndpoint(id, endpoint.rank)
    if (this.#places.use[pair] !== 0) this.#removeFromUse(pairs.use[pair]!, pair)
    if (this.#places.address[pair] !== 0) {
      this.#removeFromAddress(mappings.prefix[pairs.mapping[pair]!]!, id, pair)
    }
  }

  /** A connection opened or ended, or the pair has less time than before. */
  changed(pair: number): void {
    const { pairs } = this.#in
    const key = this.#realLifeKey(pair)
    this.#ofEndpoint.get(pairs.endpoint[pair]!)?.pairs.set(pair, key)
    if (this.#places.use[pair] !== 0) this.#ofUse.get(pairs.use[pair]!)?.set(pair, key)
  }

  /** The pair of an endpoint that goes first, 0 when none may. */
  victimOfEndpoint(endpoint: number): number {
    const known = this.#ofEndpoint.get(endpoint)
    return known === undefined ? 0 : this.#in.victims.find(known.pairs, this.#byLife)
  }

  /** The pair of a use that goes first, 0 when none may. */
  victimOfUse(use: number): number {
    const heap = this.#ofUse.get(use)
    if (heap !== undefined) return this.#in.victims.find(heap, this.#byLife)
    const { firstPair } = this.#in.uses
    let [victim, least] = [0, HELD]
    for (let pair = firstPair[use]!; pair !== 0; pair = this.#in.pairs.nextOfUse[pair]!) {
      const key = this.#lifeKey(pair)
      if (key < least) [victim, least] = [pair, key]
    }
    return victim
  }

  /** The pair on an address that goes first, 0 when none may. */
  victimOfAddress(prefix: number): number {
    let largest: KeyHeap | undefined
    for (const heap of this.#crowdOf(prefix).values()) {
      if (largest === undefined || heap.count > largest.count) largest = heap
    }
    return largest === undefined ? 0 : this.#in.victims.find(largest, this.#byAsked)
  }

  #lifeKey(pair: number): number {
    return this.#in.isHeld(pair) ? HELD : this.#realLifeKey(pair)
  }

  #realLifeKey(pair: number): number {
    const { pairs, isExact } = this.#in
    const due = Math.min(pairs.liveUntil[pair]! + pairs.grace[pair]!, WAS_CONNECTED - 1)
    const exact = isExact(pair) ? EXACT : 0
    if (pairs.connected[pair] !== 0) return CONNECTED + exact + due
    const ended = pairs.lastConnected[pair]!
    return exact + (ended === 0 ? due : WAS_CONNECTED + ended)
  }

  #askedKey(pair: number): number {
    return this.#in.isHeld(pair) ? HELD : this.#realAskedKey(pair)
  }

  #realAskedKey(pair: number): number {
    const { pairs, uses, isExact } = this.#in
    return uses.asked[pairs.use[pair]!]! + (isExact(pair) ? EXACT : 0)
  }

  #endpoint(id: number): EndpointPairs {
    const known = this.#ofEndpoint.get(id)
    if (known !== undefined) return known
    const rank = this.#rankSlots.take()
    const made = { pairs: new KeyHeap(this.#places.endpoint), rank }
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

  #addToUse(use: number, pair: number, key: number): void {
    const known = this.#ofUse.get(use)
    if (known !== undefined) {
      known.add(pair, key)
      return
    }
    const heap = new KeyHeap(this.#places.use)
    this.#ofUse.set(use, heap)
    const { uses, pairs } = this.#in
    for (let each = uses.firstPair[use]!; each !== 0; each = pairs.nextOfUse[each]!) {
      heap.add(each, this.#realLifeKey(each))
    }
  }

  #removeFromUse(use: number, pair: number): void {
    const heap = this.#ofUse.get(use)
    heap?.remove(pair)
    if (heap?.count === 0) this.#ofUse.delete(use)
  }

  #addToAddress(pair: number): void {
    const { pairs, mappings } = this.#in
    const prefix = mappings.prefix[pairs.mapping[pair]!]!
    const crowd = this.#ofAddress.get(prefix)
    if (crowd !== undefined) this.#addToCrowd(crowd, pair)
    else if (mappings.countOfPrefix[prefix]! >= LARGE) this.#crowdOf(prefix)
  }

  /** Everyone's pairs on an address, put in order when they are asked for the first time. */
  #crowdOf(prefix: number): Map<number, KeyHeap> {
    const known = this.#ofAddress.get(prefix)
    if (known !== undefined) return known
    const crowd = new Map<number, KeyHeap>()
    const { mappings, pairs } = this.#in
    for (let m = mappings.firstOfPrefix[prefix]!; m !== 0; m = mappings.nextOfPrefix[m]!) {
      for (let pair = mappings.firstPair[m]!; pair !== 0; pair = pairs.nextOfMapping[pair]!) {
        this.#addToCrowd(crowd, pair)
      }
    }
    this.#ofAddress.set(prefix, crowd)
    return crowd
  }

  #addToCrowd(crowd: Map<number, KeyHeap>, pair: number): void {
    const endpoint = this.#in.pairs.endpoint[pair]!
    let heap = crowd.get(endpoint)
    if (heap === undefined) crowd.set(endpoint, (heap = new KeyHeap(this.#places.address)))
    heap.add(pair, this.#realAskedKey(pair))
  }

  #removeFromAddress(prefix: number, endpoint: number, pair: number): void {
    const crowd = this.#ofAddress.get(prefix)
    const heap = crowd?.get(endpoint)
    heap?.remove(pair)
    if (heap?.count === 0) crowd?.delete(endpoint)
    if (crowd?.size === 0) this.#ofAddress.delete(prefix)
  }
}
