// PendingEntries brings saved entries back into the name cache, in slices, while namegate already serves answers. Before namegate learns
// an address from an answer, all saved entries of the address come back. So the address never has fewer labels than before the restart,
// and the kernel's entry for the address only ever gains labels.

import { endpointId } from '../core/ids.ts'
import { widthOf, type Family } from '../core/ip.ts'
import { hashOctets } from '../core/tables/keyed-hash.ts'
import { NAME_OCTETS_MAX } from '../core/name.ts'
import { LEARNED_BEFORE, Lesson, NOT_CHECKED } from '../names/lesson.ts'
import type { Expiry } from '../names/expiry/expiry.ts'
import type { NameCache } from '../names/name-cache.ts'
import type { EntryLedger } from '../names/tables/entry-ledger.ts'
import type { SavedPairs } from './state-port.ts'

export interface PendingEntriesOptions {
  readonly saved: SavedPairs
  /** The index of `saved` by address. */
  readonly addresses: PendingAddresses
  readonly names: NameCache
  /** Notes that entries which come back have records already. */
  readonly ledger: EntryLedger | undefined
  /** Seconds from the boot to the moment at which the daemon's clock showed 0. */
  readonly bootAtZero: number
  /** Returns true if an endpoint of the daemon before still exists. */
  readonly isKnown: (endpoint: number) => boolean
  /** Makes the first look at the connections. A look calls `claim`. */
  readonly expiry: Pick<Expiry, 'hasLooked' | 'lookOnce'>
}

export class PendingEntries {
  readonly counters = { restored: 0, withoutEndpoint: 0, overBound: 0 }
  readonly #options: PendingEntriesOptions
  readonly #addresses: PendingAddresses
  #isTaken: Uint8Array
  readonly #lesson = new Lesson()
  readonly #wire = new Uint8Array(NAME_OCTETS_MAX)
  #next = 0
  #isClaiming = false

  constructor(options: PendingEntriesOptions) {
    this.#options = options
    this.#addresses = options.addresses
    this.#isTaken = new Uint8Array(options.saved.count)
    this.#lesson.learnedAt = LEARNED_BEFORE
    // Every name that an answer brings from now on was asked later.
    this.#lesson.now = options.names.tick()
  }

  /** True while this object brings entries back. The name cache then learns an entry from here and not from an answer. */
  get isClaiming(): boolean {
    return this.#isClaiming
  }

  /** An upper bound of the number of entries that are not back yet. */
  get left(): number {
    return this.#options.saved.count - this.#next
  }

  /** Brings back all pending entries of the address at `offset`. */
  claim(family: Family, octets: Uint8Array, offset: number): void {
    if (this.#isClaiming) return
    this.#setClaiming(true)
    this.#bringBack(this.#addresses.chain(family, octets, offset))
    this.#setClaiming(false)
  }

  /** Brings back the next `rows` entries, with all entries of their addresses. Returns true when no entry is left. */
  step(rows: number): boolean {
    const { saved } = this.#options
    const end = Math.min(saved.count, this.#next + rows)
    this.#setClaiming(true)
    for (; this.#next < end; this.#next++) {
      if (this.#isTaken[this.#next] === 0) this.#bringBackAddress(this.#next)
    }
    this.#setClaiming(false)
    if (this.#next < saved.count) return false
    this.#free()
    return true
  }

  #free(): void {
    this.#options.saved.free()
    this.#addresses.free()
    this.#isTaken = new Uint8Array(0)
  }

  #setClaiming(isClaiming: boolean): void {
    const { ledger } = this.#options
    this.#isClaiming = isClaiming
    if (ledger !== undefined) ledger.isRestoring = isClaiming
  }

  /** Brings back a row and the other rows of its address. */
  #bringBackAddress(row: number): void {
    const { saved } = this.#options
    const addresses = this.#addresses
    if (addresses.shares(row)) {
      const octets = saved.octets(row)
      const chain = addresses.chain(saved.family(row), octets, saved.addressAt(row))
      this.#bringBack(chain)
    } else {
      this.#restore(row)
    }
  }

  /** Brings back the pending rows of a chain. */
  #bringBack(chain: number): void {
    for (let row = this.#addresses.first(chain); row !== NONE; row = this.#addresses.next(row)) {
      this.#restore(row)
    }
  }

  /** An entry can cause an eviction, which chooses by open connections. So a look comes before the first entry near a bound. */
  #lookIfNear(): void {
    const { names, expiry } = this.#options
    if (expiry.hasLooked || !names.eviction.isNear) return
    this.#setClaiming(false)
    expiry.lookOnce()
    this.#setClaiming(true)
  }

  #restore(row: number): void {
    this.#lookIfNear()
    if (this.#isTaken[row] === 1) return
    this.#isTaken[row] = 1
    const { saved, names, bootAtZero, isKnown } = this.#options
    const endpoint = saved.endpoint(row)
    if (!isKnown(endpoint)) {
      this.counters.withoutEndpoint++
      return
    }
    const octets = saved.octets(row)
    const family = saved.family(row)
    this.#readAddress(octets, saved.addressAt(row), widthOf(family) >> 3)
    this.#readName(octets, saved.nameAt(row), saved.nameLength(row))
    const lesson = this.#lesson
    lesson.endpoint = endpointId(endpoint)
    lesson.family = family
    lesson.guarded = NOT_CHECKED
    // The record was rounded up, so the time is rounded down here. The next record is then the same, however often a daemon starts.
    lesson.liveUntil = Math.floor(saved.until(row) - bootAtZero)
    lesson.grace = saved.grace(row)
    const taught = names.learn(lesson)
    if (taught === 0) this.counters.overBound++
    else this.counters.restored++
  }

  #readAddress(octets: Uint8Array, at: number, size: number): void {
    const address = this.#lesson.octets
    for (let i = 0; i < size; i++) address[i] = octets[at + i]!
    for (let i = size; i < 16; i++) address[i] = 0
  }

  #readName(octets: Uint8Array, at: number, length: number): void {
    const wire = this.#wire
    for (let i = 0; i < length; i++) wire[i] = octets[at + i]!
    this.#lesson.name.set(wire, length, hashOctets(wire, 0, length))
  }
}

/** The result "no row". */
export const NONE = -1
/** With 4 chains per entry, few chains have more than one address. This matters because a step along a chain is a cache miss. */
const CHAINS_PER_ENTRY = 4
const CHAINS_MIN = 8

/**
 * An index of the saved entries by address. The rows are in chains by the hash of their address. A chain has all entries of an address.
 * It rarely also has entries of another address, which then come back a little early. The index is made once, at the start, without a
 * comparison of addresses. It needs about 25 octets per entry.
 */
export class PendingAddresses {
  /** First row of each chain + 1, 0 for an empty chain. */
  #firsts: Int32Array
  /** Next row of the same chain + 1, 0 for the last row. */
  #next: Int32Array
  /** 1 for each row whose chain has another row. */
  #shares: Uint8Array

  constructor(saved: SavedPairs) {
    const chains = 2 ** Math.ceil(Math.log2(Math.max(CHAINS_MIN, CHAINS_PER_ENTRY * saved.count)))
    this.#firsts = new Int32Array(chains)
    this.#next = new Int32Array(saved.count)
    this.#shares = new Uint8Array(saved.count)
    for (let row = 0; row < saved.count; row++) {
      const chain = this.chain(saved.family(row), saved.octets(row), saved.addressAt(row))
      const next = this.#firsts[chain]!
      this.#next[row] = next
      this.#firsts[chain] = row + 1
      if (next !== 0) this.#shares[row] = this.#shares[next - 1] = 1
    }
  }

  /** Returns the chain of an address. The chain can be empty. */
  chain(family: Family, octets: Uint8Array, offset: number): number {
    return hashOctets(octets, offset, widthOf(family) >> 3) & (this.#firsts.length - 1)
  }

  /** Returns true if the chain of a row has another row. */
  shares(row: number): boolean {
    return this.#shares[row] === 1
  }

  /** Returns the first row of a chain, or NONE. */
  first(chain: number): number {
    return this.#firsts[chain]! - 1
  }

  /** Returns the row after `row` in its chain, or NONE. */
  next(row: number): number {
    return this.#next[row]! - 1
  }

  /** Empties every chain and frees the memory. */
  free(): void {
    this.#firsts = new Int32Array(CHAINS_MIN)
    this.#next = new Int32Array(0)
    this.#shares = new Uint8Array(0)
  }
}
