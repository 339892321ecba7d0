// Reads the network of this machine at the time of the call: the addresses of its interfaces, and the name servers of resolv.conf.

import { readFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { formatPrefix, parseAddress, type Prefix } from '../core/ip.ts'
import type { SocketAddress } from '../core/socket-address.ts'
import { isLoopback } from '../core/ip.ts'
import { sameOctets, type IsOwnAddress } from './upstreams.ts'

const RESOLV_CONF = '/etc/resolv.conf'
const DNS_PORT = 53

/** Returns a function that says if an address is a loopback address or an address of this machine's interfaces. */
export function ownAddresses(): IsOwnAddress {
  const own = nodeAddresses()
  return (family, octets) =>
    isLoopback(family, octets) ||
    own.some((each) => each.family === family && sameOctets(each.octets, octets))
}

/**
 * The addresses of the interfaces, loopback included, without duplicates, as prefixes of full length. The datapath gives these addresses
 * the address class `host`, and answers never give them labels.
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

/** The servers of the `nameserver` lines of resolv.conf(5), which `system` means. Empty when the file cannot be read. */
export function systemResolvers(file = RESOLV_CONF): readonly SocketAddress[] {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch {
    return []
  }
  return text.split('\n').flatMap((line) => {
    const [keyword, address] = line.trim().split(/\s+/)
    const parsed = keyword === 'nameserver' ? parseAddress(address ?? '') : undefined
    return parsed === undefined ? [] : [{ ...parsed, port: DNS_PORT }]
  })
}
