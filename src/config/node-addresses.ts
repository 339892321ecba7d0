// NodeAddresses has the addresses that lead to this machine itself. The datapath gives them the address class `host`, and answers never give
// them labels. They are the addresses of all interfaces, also of interfaces without carrier, and the addresses that every machine in a
// subnet accepts: its broadcast addresses (RFC 919; the lowest address counts, too, before Linux 5.14) and the anycast address of its
// routers (RFC 4291 2.6.1). Addresses come and go while the daemon runs, so the daemon looks once per second.

import { formatPrefix, isLoopback, parseAddress, truncatePrefix, type Prefix } from '../core/ip.ts'
import { loadPosix, type Posix } from '../native/native.ts'

/** Subnets with longer prefixes are links between two machines, without a broadcast address (RFC 3021) or an anycast address (RFC 6164). */
const LONGEST_SUBNET = { 4: 30, 6: 126 }

type AddressReader = Pick<Posix, 'ifAddresses' | 'addressSocket' | 'addressesChanged' | 'closeFd'>

export class NodeAddresses {
  readonly #posix: AddressReader
  readonly #socket: number
  #known: readonly Prefix[] = []

  constructor(posix: AddressReader = loadPosix()) {
    this.#posix = posix
    // Opened first, so that no change is missed.
    this.#socket = posix.addressSocket()
    this.#known = this.#read()
  }

  /** The addresses at the last look, without duplicates, as prefixes of full length. */
  get known(): readonly Prefix[] {
    return this.#known
  }

  /** Returns all addresses if they changed since the last look, else undefined. */
  look(): readonly Prefix[] | undefined {
    if (this.#socket >= 0 && this.#posix.addressesChanged(this.#socket) === 0) return undefined
    const before = textOf(this.#known)
    this.#known = this.#read()
    return textOf(this.#known) === before ? undefined : this.#known
  }

  close(): void {
    if (this.#socket >= 0) this.#posix.closeFd(this.#socket)
  }

  /** If the kernel does not list the addresses, returns those of the last look. */
  #read(): readonly Prefix[] {
    const found = this.#posix.ifAddresses()
    if (typeof found === 'number') return this.#known
    const byText = new Map<string, Prefix>()
    for (let i = 0; i + 2 < found.length; i += 3) {
      for (const each of leadingHere(
        String(found[i]),
        Number(found[i + 1]),
        String(found[i + 2]),
      )) {
        byText.set(formatPrefix(each), each)
      }
    }
    return [...byText.values()]
  }
}

/** Returns the addresses that lead to this machine now. */
export function readNodeAddresses(): readonly Prefix[] {
  const node = new NodeAddresses()
  node.close()
  return node.known
}

/** Returns the addresses by which this machine can be reached because an interface has `text` with this prefix length. */
export function leadingHere(text: string, length: number, broadcast: string): readonly Prefix[] {
  const own = parseAddress(text)
  if (own === undefined) return []
  const { family } = own
  if (length > LONGEST_SUBNET[family] || isLoopback(family, own.octets)) return [own]
  const lowest = { ...truncatePrefix(own, length), length: own.length }
  const others = family === 4 ? [highestOf(own, length), parseAddress(broadcast)] : []
  return [own, lowest, ...others.flatMap((each) => each ?? [])]
}

/** Returns the address whose host bits are all one. */
function highestOf({ family, octets, length: full }: Prefix, length: number): Prefix {
  const highest = Uint8Array.from(octets)
  for (let bit = length; bit < full; bit++) highest[bit >> 3]! |= 0x80 >> (bit & 7)
  return { family, octets: highest, length: full }
}

function textOf(addresses: readonly Prefix[]): string {
  return addresses.map(formatPrefix).sort().join(' ')
}
