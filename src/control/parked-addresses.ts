// Which saved pairs are about an address: found by the address, and from its first row to the others. Made once at the start;
// some 12 octets a pair while they wait.

import { HashIndex } from '../core/hash-index.ts'
import { widthOf, type Family } from '../core/ip.ts'
import { hashOctets } from '../core/name.ts'
import { sameOctets } from '../dns/wire.ts'
import type { SavedPairs } from './saved-state.ts'

/** No row. */
export const NONE = -1

export class ParkedAddresses {
  readonly #saved: SavedPairs
  /** Row of the next pair of the same address + 1, 0 behind the last. */
  readonly #next: Int32Array
  readonly #firsts: HashIndex

  constructor(saved: SavedPairs) {
    this.#saved = saved
    this.#next = new Int32Array(saved.count)
    this.#firsts = new HashIndex(saved.count, {
      hashOfRow: (row) => {
        const at = row - 1
        return hashOf(saved.family(at), saved.octets(at), saved.addressAt(at))
      },
    })
    for (let row = 0; row < saved.count; row++) this.#add(row)
  }

  /** The first row of an address, the least; NONE where none is about it. */
  first(family: Family, octets: Uint8Array, offset: number): number {
    return this.#find(hashOf(family, octets, offset), family, octets, offset)
  }

  /** The next row of the same address, NONE behind the last. */
  next(row: number): number {
    return this.#next[row]! - 1
  }

  #add(row: number): void {
    const saved = this.#saved
    const [family, octets, at] = [saved.family(row), saved.octets(row), saved.addressAt(row)]
    const hash = hashOf(family, octets, at)
    const first = this.#find(hash, family, octets, at)
    if (first === NONE) {
      this.#firsts.insert(hash, row + 1)
      return
    }
    this.#next[row] = this.#next[first]!
    this.#next[first] = row + 1
  }

  #find(hash: number, family: Family, octets: Uint8Array, offset: number): number {
    const saved = this.#saved
    for (let at = this.#firsts.start(hash); ; at = this.#firsts.next(at, hash)) {
      const row = this.#firsts.row(at) - 1
      if (row < 0) return NONE
      if (saved.family(row) !== family) continue
      const size = widthOf(family) >> 3
      if (sameOctets(saved.octets(row), saved.addressAt(row), octets, offset, size)) return row
    }
  }
}

function hashOf(family: Family, octets: Uint8Array, offset: number): number {
  return hashOctets(octets, offset, widthOf(family) >> 3)
}
