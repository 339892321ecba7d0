// Addresses of this machine's interfaces, as they are at the time of the call.

import { networkInterfaces } from 'node:os'
import { formatPrefix, parseAddress, type Prefix } from '../core/ip.ts'
import { isLoopback, sameOctets, type IsOwnAddress } from './upstreams.ts'

/** Tells whether an address is loopback or one of the interfaces'. */
export function ownAddresses(): IsOwnAddress {
  const own = nodeAddresses()
  return (family, octets) =>
    isLoopback(family, octets) ||
    own.some((each) => each.family === family && sameOctets(each.octets, octets))
}

/**
 * The addresses of the interfaces, loopback included, each once and as a prefix of full length. The datapath has them in class
 * host, and answers never give them labels.
 */
export function nodeAddresses(): readonly Prefix[] {
  const byText = new Map<string, Prefix>()
  for (const addresses of Object.values(networkInterfaces())) {
    for (const { address } of addresses ?? []) {
      const parsed = parseAddress(address)
      if (parsed !== undefined) byText.set(formatPrefix(parsed), parsed)
    }
  }
  return [...byText.values()]
}
