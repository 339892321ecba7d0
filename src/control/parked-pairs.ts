// Pairs that the daemon before knew, on their way back into the name cache: in slices beside the answers that are served
// meanwhile. Before an answer teaches anything of an address, all that was known of that address is brought back, so that
// it never has fewer labels than before: the kernel's entry for it stays as it is, or gains labels.

import { endpointId } from '../core/ids.ts'
import { widthOf, type Family } from '../core/ip.ts'
import { hashOctets, NAME_OCTETS_MAX } from '../core/name.ts'
import { sameOctets } from '../dns/wire.ts'
import type { NameCache } from '../names/name-cache.ts'
import type { PairLedger } from '../names/pair-ledger.ts'
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
  /** First row (plus 1) of each bucket of addresses, and the next of the same bucket. */
  readonly #heads: Int32Array
  readonly #next: Int32Array
  readonly #isTaken: Uint8Array
  readonly #address = new Uint8Array(16)
  readonly #name = { wire: new Uint8Array(NAME_OCTETS_MAX), length: 0, hash: 0 }
  #at = 0
  #isClaiming = false

  constructor(options: ParkedPairsOptions) {
    this.#to = options
    const { saved } = options
    const buckets = 2 ** Math.ceil(Math.log2(Math.max(8, saved.count)))
    this.#heads = new Int32Array(buckets)
    this.#next = new Int32Array(saved.count)
    this.#isTaken = new Uint8Array(saved.count)
    for (let row = 0; row < saved.count; row++) {
      const bucket = this.#bucket(saved.family(row), saved.octets(row), saved.addressAt(row))
      this.#next[row] = this.#heads[bucket]!
      this.#heads[bucket] = row + 1
    }
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
    if (this.#isClaiming) return
    this.#isClaiming = true
    const { saved, ledger } = this.#to
    if (ledger !== undefined) ledger.isRestoring = true
    const first = this.#heads[this.#bucket(family, octets, offset)]!
    for (let row = first - 1; row >= 0; row = this.#next[row]! - 1) {
      if (this.#isTaken[row] === 1 || saved.family(row) !== family) continue
      const size = widthOf(family) >> 3
      if (sameOctets(saved.octets(row), saved.addressAt(row), octets, offset, size)) {
        this.#restore(row)
      }
    }
    if (ledger !== undefined) ledger.isRestoring = false
    this.#isClaiming = false
  }

  /** Brings back the next ones, `rows` at most; true when none is left. */
  step(rows: number): boolean {
    const { saved } = this.#to
    const end = Math.min(saved.count, this.#at + rows)
    while (this.#at < end) {
      const row = this.#at++
      if (this.#isTaken[row] === 0) {
        this.claim(saved.family(row), saved.octets(row), saved.addressAt(row))
      }
    }
    return this.#at === saved.count
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

  #bucket(family: Family, octets: Uint8Array, offset: number): number {
    return hashOctets(octets, offset, widthOf(family) >> 3) & (this.#heads.length - 1)
  }
}
