// Between the address text that Node's sockets speak and the 16 octets used inside. Both directions are
// remembered: text -> octets in an LRU, octets -> text in a direct-mapped table (one entry per hash), so
// a known peer costs one look-up. Text with a zone (fe80::1%eth0) is kept for the way back, since the octets alone
// can't be answered. Memory: at most BOOK_SIZE entries each way.

import { LRUCache } from 'lru-cache'
import { formatAddress, parseAddress, type Family } from '../../core/ip.ts'
import { hashOctets } from '../../core/tables/keyed-hash.ts'

/** Peers remembered; a power of two. */
const BOOK_SIZE = 4096

export interface PeerAddress {
  readonly family: Family
  /** 16 octets. */
  readonly octets: Uint8Array
  /** As the socket wrote it, zone included. */
  readonly text: string
  /** Broadcast, multicast and the unspecified address send no query that we answer (docs/spec/semantics 4). */
  readonly unicast: boolean
}

export class AddressBook {
  readonly #byText = new LRUCache<string, PeerAddress>({ max: BOOK_SIZE })
  readonly #byOctets = Array.from<PeerAddress | undefined>({ length: BOOK_SIZE })

  /** The peer of an address text from a socket, or undefined when it isn't an address. */
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

  /** The peer whose 16 octets stand at `offset`. */
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

  /** Text of the address whose 16 octets stand at `offset`. */
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

/** Whether a query from there gets an answer: not from port 0, nor from what is no single host (docs/spec/semantics 4). */
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

/** False for 224.0.0.0/4, 255.255.255.255, 0.0.0.0, ff00::/8 and ::. Subnet broadcasts can't be told from here. */
function isUnicast(family: Family, octets: Uint8Array): boolean {
  const first = octets[0] ?? 0
  if (family === 4 && first >= 224)
    return first < 240 ? false : octets.subarray(0, 4).some((o) => o !== 255)
  if (family === 6 && first === 0xff) return false
  return octets.some((octet) => octet !== 0)
}
