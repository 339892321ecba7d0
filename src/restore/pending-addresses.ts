// Which saved pairs are about an address: chains of rows by the hash of their address. A chain has all pairs of an address and now
// and then those of another one, which does no harm: whoever brings back a chain brings back a little more than was asked for.
// Made once at the start, so it compares nothing; some 25 octets a pair while they wait.

import { widthOf, type Family } from '../core/ip.ts'
import { hashOctets } from '../core/tables/keyed-hash.ts'
import type { SavedPairs } from './saved-state.ts'

/** No row. */
export const NONE = -1
/** Chains for each pair, so that few have more than one address: pairs of a chain stand far apart, and are not in the cache. */
const CHAINS_PER_PAIR = 4
const CHAINS_MIN = 8

export class PendingAddresses {
  /** Row + 1 with which each chain begins. */
  #firsts: Int32Array
  /** Row + 1 behind each row, 0 behind the last. */
  #next: Int32Array
  /** 1 for rows that are not alone in their chain. */
  #shares: Uint8Array

  constructor(saved: SavedPairs) {
    const chains = 2 ** Math.ceil(Math.log2(Math.max(CHAINS_MIN, CHAINS_PER_PAIR * saved.count)))
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

  /** The chain of an address, whether or not anything is known of it. */
  chain(family: Family, octets: Uint8Array, offset: number): number {
    return hashOctets(octets, offset, widthOf(family) >> 3) & (this.#firsts.length - 1)
  }

  /** Whether the chain of a row has others; most have none. */
  shares(row: number): boolean {
    return this.#shares[row] === 1
  }

  /** The first row of a chain, NONE where it is empty. */
  first(chain: number): number {
    return this.#firsts[chain]! - 1
  }

  /** The next row of the same chain, NONE behind the last. */
  next(row: number): number {
    return this.#next[row]! - 1
  }

  /** Nothing is about any address any more; the memory is given back. */
  free(): void {
    this.#firsts = new Int32Array(CHAINS_MIN)
    this.#next = new Int32Array(0)
    this.#shares = new Uint8Array(0)
  }
}
