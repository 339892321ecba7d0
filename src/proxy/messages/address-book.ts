// AddressBook gives the text of a client's address, by which connections of one client are counted. It remembers clients in a table with
// one element per hash, so a known client costs one lookup and no new text. Memory: at most BOOK_SIZE elements.

import { formatAddress, type Family } from '../../core/ip.ts'
import { hashOctets } from '../../core/tables/keyed-hash.ts'

/** The number of remembered peers; a power of two. */
const BOOK_SIZE = 4096

export interface PeerAddress {
  readonly family: Family
  /** 16 octets. */
  readonly octets: Uint8Array
  readonly text: string
}

export class AddressBook {
  readonly #known = Array.from<PeerAddress | undefined>({ length: BOOK_SIZE })

  /** Returns the peer for the 16 octets at `offset`. */
  at(family: Family, octets: Uint8Array, offset: number): PeerAddress {
    const slot = hashOctets(octets, offset, 16) & (BOOK_SIZE - 1)
    const known = this.#known[slot]
    if (known?.family === family && sameOctets(known.octets, octets, offset)) return known
    const own = octets.slice(offset, offset + 16)
    const peer = { family, octets: own, text: formatAddress(family, own) }
    this.#known[slot] = peer
    return peer
  }
}

function sameOctets(a: Uint8Array, b: Uint8Array, bOffset: number): boolean {
  for (let i = 0; i < 16; i++) if (a[i] !== b[bOffset + i]) return false
  return true
}
