// Pairs that the daemon before knew, on their way back into the name cache: in slices beside the answers that are served
// meanwhile. Before an answer teaches anything of an address, all that was known of that address is brought back, so that
// it never has fewer labels than before: the kernel's entry for it stays as it is, or gains labels.

import { endpointId } from '../core/ids.ts'
import { widthOf, type Family } from '../core/ip.ts'
import { hashOctets, NAME_OCTETS_MAX } from '../core/name.ts'
import type { NameCache } from '../names/name-cache.ts'
import type { PairLedger } from '../names/pair-ledger.ts'
import { NONE, ParkedAddresses } from './parked-addresses.ts'
import type { SavedPairs } from './saved-state.ts'

export interface ParkedPairsOptions {
  readonly saved: SavedPairs
  readonly names: NameCache
  /** Told that what comes has records already. */
  readonly ledger: PairLedger | undefined
  /** Seconds since boot when the clock showed 0. */
  readonly bootAtZero: number
  /** Whether an endpoint of the daemon before is still there. */
  readonly isKnown: (endpoint: number) => boolean
}

export class ParkedPairs {
  readonly counters = { restored: 0, withoutEndpoint: 0, overBound: 0 }
  readonly #to: ParkedPairsOptions
  readonly #addresses: ParkedAddresses
  readonly #isTaken: Uint8Array
  readonly #address = new Uint8Array(16)
  readonly #name = { wire: new Uint8Array(NAME_OCTETS_MAX), length: 0, hash: 0 }
  #at = 0
  #isClaiming = false

  constructor(options: ParkedPairsOptions) {
    this.#to = options
    this.#addresses = new ParkedAddresses(options.saved)
    this.#isTaken = new Uint8Array(options.saved.count)
  }

  /** Whether what is learned now is what was parked. */
  get isClaiming(): boolean {
    return this.#isClaiming
  }

  /** Pairs that are not back yet, at most. */
  get left(): number {
    return this.#to.saved.count - this.#at
  }

  /** Brings back all that is parked of an address. */
  claim(family: Family, octets: Uint8Array, offset: number): void {
    if (!this.#isClaiming) this.#bringBack(this.#addresses.first(family, octets, offset))
  }

  /** Brings back the next ones, `rows` at most but for what else is known of the last one's address; true when none is left. */
  step(rows: number): boolean {
    const { count } = this.#to.saved
    const end = Math.min(count, this.#at + rows)
    // Whose address came back has none before it.
    while (this.#at < end) this.#bringBack(this.#at++)
    return this.#at === count
  }

  /** Brings back the pairs of an address, given the first; nothing when that is done. */
  #bringBack(first: number): void {
    if (first === NONE || this.#isTaken[first] === 1) return
    const { ledger } = this.#to
    this.#isClaiming = true
    if (ledger !== undefined) ledger.isRestoring = true
    for (let row = first; row !== NONE; row = this.#addresses.next(row)) this.#restore(row)
    if (ledger !== undefined) ledger.isRestoring = false
    this.#isClaiming = false
  }

  #restore(row: number): void {
    this.#isTaken[row] = 1
    const { saved, names, bootAtZero, isKnown } = this.#to
    const endpoint = saved.endpoint(row)
    if (!isKnown(endpoint)) {
      this.counters.withoutEndpoint++
      return
    }
    const octets = saved.octets(row)
    const at = saved.addressAt(row)
    const family = saved.family(row)
    this.#address.fill(0)
    for (let i = 0; i < widthOf(family) >> 3; i++) this.#address[i] = octets[at + i]!
    const name = this.#name
    name.length = saved.nameLength(row)
    const nameAt = saved.nameAt(row)
    for (let i = 0; i < name.length; i++) name.wire[i] = octets[nameAt + i]!
    name.hash = hashOctets(name.wire, 0, name.length)
    const now = names.tick()
    const ttl = Math.ceil(saved.until(row) - bootAtZero) - now
    const grace = saved.grace(row)
    const taught = names.learn(
      endpointId(endpoint),
      name,
      family,
      this.#address,
      0,
      ttl,
      now,
      grace,
    )
    if (taught === 0) this.counters.overBound++
    else this.counters.restored++
  }
}
