// AddressBook converts addresses between the text of Node's sockets and the 16 octets that namegate uses. It remembers both
// directions, so a known peer costs one lookup: text -> octets in an LRU cache, octets -> text in a table with one element per
// hash. It keeps a text with a zone (fe80::1%eth0), because an answer to this peer needs the zone. Memory: at most BOOK_SIZE
// elements per direction.

import { LRUCache } from 'lru-cache'
import { formatAddress, parseAddress, type Family } from '../../core/ip.ts'
import { hashOctets } from '../../core/tables/keyed-hash.ts'

/** The number of remembered peers; a power of two. */
const BOOK_SIZE = 4096

export interface PeerAddress {
  readonly family: Family
  /** 16 octets. */
  readonly octets: Uint8Array
  /** The address text as the socket wrote it, with its zone. */
  readonly text: string
  /** False for a broadcast, multicast or unspecified address: a query from such an address is not answered (docs/spec/semantics 4). */
  readonly unicast: boolean
}

export class AddressBook {
  readonly #byText = new LRUCache<string, PeerAddress>({ max: BOOK_SIZE })
  readonly #byOctets = Array.from<PeerAddress | undefined>({ length: BOOK_SIZE })

  /** Returns the peer for an address text of a socket, or undefined if the text is no address. */
  read(text: string): PeerAddress | undefined {
    const known = this.#byText.get(text)
    if (known !== undefined) return known
    const zone = text.indexOf('%')
    const parsed = parseAddress(zone < 0 ? text : text.slice(0, zone))
    if (parsed === undefined) return undefined
    const { family, octets } = parsed
    const peer = { family, octets, text, unicast: isUnicast(family, octets) }
    this.#byText.set(text, peer)
    this.#byOctets[slotOf(octets, 0)] = peer
    return peer
  }

  /** Returns the peer for the 16 octets at `offset`. */
  at(family: Family, octets: Uint8Array, offset: number): PeerAddress {
    const slot = slotOf(octets, offset)
    const known = this.#byOctets[slot]
    if (known?.family === family && sameOctets(known.octets, octets, offset)) return known
    const own = octets.slice(offset, offset + 16)
    const text = formatAddress(family, own)
    const peer = { family, octets: own, text, unicast: isUnicast(family, own) }
    this.#byOctets[slot] = peer
    return peer
  }

  /** Returns the text of the address in the 16 octets at `offset`. */
  write(family: Family, octets: Uint8Array, offset: number): string {
    const known = this.#byOctets[slotOf(octets, offset)]
    if (
      known !== undefined &&
      known.family === family &&
      sameOctets(known.octets, octets, offset)
    ) {
      return known.text
    }
    return formatAddress(family, octets, offset)
  }
}

/** Returns true if a query from this peer and port is answered: the port is not 0, and the address is unicast (docs/spec/semantics 4). */
export function isAnswerable(peer: PeerAddress, port: number): boolean {
  return port !== 0 && peer.unicast
}

function slotOf(octets: Uint8Array, offset: number): number {
  return hashOctets(octets, offset, 16) & (BOOK_SIZE - 1)
}

function sameOctets(a: Uint8Array, b: Uint8Array, bOffset: number): boolean {
  for (let i = 0; i < 16; i++) if (a[i] !== b[bOffset + i]) return false
  return true
}

/** Returns false for 224.0.0.0/4, 255.255.255.255, 0.0.0.0, ff00::/8 and ::. It cannot recognize the broadcast address of a subnet. */
function isUnicast(family: Family, octets: Uint8Array): boolean {
  const first = octets[0] ?? 0
  if (family === 4 && first >= 224)
    return first < 240 ? false : octets.subarray(0, 4).some((o) => o !== 255)
  if (family === 6 && first === 0xff) return false
  return octets.some((octet) => octet !== 0)
}
