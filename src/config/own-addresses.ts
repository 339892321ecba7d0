// Which addresses are this machine's own, as its interfaces have them at the time of asking.

import { networkInterfaces } from 'node:os'
import { parseAddress, type Prefix } from '../core/ip.ts'
import { isLoopback, sameOctets, type IsOwnAddress } from './upstreams.ts'

/** Loopback and the addresses that the node's interfaces have now. */
export function ownAddresses(): IsOwnAddress {
  const own: Prefix[] = []
  for (const addresses of Object.values(networkInterfaces())) {
    for (const { address } of addresses ?? []) {
      const parsed = parseAddress(address)
      if (parsed !== undefined) own.push(parsed)
    }
  }
  return (family, octets) =>
    isLoopback(family, octets) ||
    own.some((each) => each.family === family && sameOctets(each.octets, octets))
}
