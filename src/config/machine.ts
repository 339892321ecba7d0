// Reads what the configuration needs of this machine at the time of the call: whether an address is its own, and the name servers of
// resolv.conf. `node-addresses.ts` reads the addresses that the datapath must know.

import { readFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { parseAddress, type Prefix } from '../core/ip.ts'
import type { SocketAddress } from '../core/socket-address.ts'
import { isLoopback } from '../core/ip.ts'
import { sameOctets, type IsOwnAddress } from './upstreams.ts'

const RESOLV_CONF = '/etc/resolv.conf'
const DNS_PORT = 53

/** Returns a function that says if an address is a loopback address or an address of this machine's interfaces. */
export function ownAddresses(): IsOwnAddress {
  const own = interfaceAddresses()
  return (family, octets) =>
    isLoopback(family, octets) ||
    own.some((each) => each.family === family && sameOctets(each.octets, octets))
}

/** The addresses of the interfaces that are up. */
function interfaceAddresses(): readonly Prefix[] {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
  return all.flatMap(({ address }) => parseAddress(address) ?? [])
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
