// Pairs that the daemon before knew, on their way back into the name cache: in slices beside the answers that are served
// meanwhile. Before an answer teaches anything of an address, all that was known of that address is brought back, so that
// it never has fewer labels than before: the kernel's entry for it stays as it is, or gains labels.

import { endpointId } from '../core/ids.ts'
import { widthOf, type Family } from '../core/ip.ts'
import { hashOctets } from '../core/tables/keyed-hash.ts'
import { NAME_OCTETS_MAX } from '../core/name.ts'
import { LEARNED_BEFORE, type NameCache } from '../names/name-cache.ts'
import type { EntryLedger } from '../names/tables/entry-ledger.ts'
import { NONE, type PendingAddresses } from './pending-addresses.ts'
import type { SavedPairs } from './saved-state.ts'

export interface PendingEntriesOptions {
  readonly saved: SavedPairs
  /** Of the same pairs. */
  readonly addresses: PendingAddresses
  readonly names: NameCache
  /** Told that what comes has records already. */
  readonly ledger: EntryLedger | undefined
  /** Seconds since boot when the clock showed 0. */
  readonly bootAtZero: number
  /** Whether an endpoint of the daemon before is still there. */
  readonly isKnown: (endpoint: number) => boolean
}

export class PendingEntries {
  readonly counters = { restored: 0, withoutEndpoint: 0, overBound: 0 }
  readonly #to: PendingEntriesOptions
  readonly #addresses: PendingAddresses
  #isTaken: Uint8Array
  readonly #address = new Uint8Array(16)
  readonly #name = { wire: new Uint8Array(NAME_OCTETS_MAX), length: 0, hash: 0 }
  #at = 0
  #isClaiming = false

  constructor(options: PendingEntriesOptions) {
    this.#to = options
    this.#addresses = options.addresses
    this.#isTaken = new Uint8Array(options.saved.count)
  }

  /** Whether what is learned now is what was pending. */
  get isClaiming(): boolean {
    return this.#isClaiming
  }

  /** Pairs that are not back yet, at most. */
  get left(): number {
    return this.#to.saved.count - this.#at
  }

  /** Brings back all that is pending of an address. */
  claim(family: Family, octets: Uint8Array, offset: number): void {
    if (this.#isClaiming) return
    this.#setClaiming(true)
    this.#bringBack(this.#addresses.chain(family, octets, offset), this.#to.names.tick())
    this.#setClaiming(false)
  }

  /** Brings back the next ones, `rows` at most but for what else is known of their addresses; true when none is left. */
  step(rows: number): boolean {
    const { saved, names } = this.#to
    const end = Math.min(saved.count, this.#at + rows)
    const now = names.tick()
    this.#setClaiming(true)
    for (; this.#at < end; this.#at++) {
      if (this.#isTaken[this.#at] === 0) this.#bringBackWith(this.#at, now)
    }
    this.#setClaiming(false)
    if (this.#at < saved.count) return false
    this.#free()
    return true
  }

  /** All are back. */
  #free(): void {
    this.#to.saved.free()
    this.#addresses.free()
    this.#isTaken = new Uint8Array(0)
  }

  #setClaiming(isClaiming: boolean): void {
    const { ledger } = this.#to
    this.#isClaiming = isClaiming
    if (ledger !== undefined) ledger.isRestoring = isClaiming
  }

  /** Brings back a row and what else is known of its address. */
  #bringBackWith(row: number, now: number): void {
    const { saved } = this.#to
    const addresses = this.#addresses
    if (addresses.shares(row)) {
      const octets = saved.octets(row)
      const chain = addresses.chain(saved.family(row), octets, saved.addressAt(row))
      this.#bringBack(chain, now)
    } else {
      this.#restore(row, now)
    }
  }

  /** Brings back what is left of a chain. */
  #bringBack(chain: number, now: number): void {
    for (let row = this.#addresses.first(chain); row !== NONE; row = this.#addresses.next(row)) {
      if (this.#isTaken[row] === 0) this.#restore(row, now)
    }
  }

  #restore(row: number, now: number): void {
    this.#isTaken[row] = 1
    const { saved, names, bootAtZero, isKnown } = this.#to
    const endpoint = saved.endpoint(row)
    if (!isKnown(endpoint)) {
      this.counters.withoutEndpoint++
      return
    }
    const octets = saved.octets(row)
    const family = saved.family(row)
    this.#readAddress(octets, saved.addressAt(row), widthOf(family) >> 3)
    this.#readName(octets, saved.nameAt(row), saved.nameLength(row))
    // Downwards, as it was written upwards: so the next record says the same, however often a daemon starts.
    const ttl = Math.floor(saved.until(row) - bootAtZero) - now
    const taught = names.learn(
      endpointId(endpoint),
      this.#name,
      family,
      this.#address,
      0,
      ttl,
      now,
      saved.grace(row),
      LEARNED_BEFORE,
    )
    if (taught === 0) this.counters.overBound++
    else this.counters.restored++
  }

  #readAddress(octets: Uint8Array, at: number, size: number): void {
    const address = this.#address
    for (let i = 0; i < size; i++) address[i] = octets[at + i]!
    for (let i = size; i < 16; i++) address[i] = 0
  }

  #readName(octets: Uint8Array, at: number, length: number): void {
    const { wire } = this.#name
    for (let i = 0; i < length; i++) wire[i] = octets[at + i]!
    this.#name.length = length
    this.#name.hash = hashOctets(wire, 0, length)
  }
}
