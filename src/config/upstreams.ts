// Decides which servers namegate asks. `system` is replaced by the servers of resolv.conf. A server that is one of namegate's own listeners
// is a fault, because every query would return to namegate. The node's addresses and the servers of resolv.conf are arguments.

import type { Fault } from '../core/errors.ts'
import type { Family } from '../core/ip.ts'
import { formatSocketAddress, type SocketAddress } from '../core/socket-address.ts'
import type { ListenerConfig, UpstreamServer } from './config.ts'

/** Returns true for an address of this node. `octets` has 16 octets (core/ip.ts). */
export type IsOwnAddress = (family: Family, octets: Uint8Array) => boolean

export interface ResolvedUpstreams {
  /** The servers in order of preference, without duplicates. */
  readonly addresses: readonly SocketAddress[]
  readonly faults: readonly Fault[]
}

/** Resolves the configured servers. Calls `system` only when the configuration names `system`. */
export function resolveUpstreams(
  servers: readonly UpstreamServer[],
  listeners: readonly ListenerConfig[],
  isOwn: IsOwnAddress,
  system: () => readonly SocketAddress[],
): ResolvedUpstreams {
  const addresses = new Map<string, SocketAddress>()
  const faults: Fault[] = []
  for (const server of servers) {
    const named = server.kind === 'system' ? system() : [server.address]
    const who = server.kind === 'system' ? ' (named by resolv.conf)' : ''
    if (named.length === 0) {
      faults.push(at(server, 'found no server in resolv.conf, expected one'))
    }
    for (const address of named) {
      const text = formatSocketAddress(address)
      const fault = upstreamFault(address, listeners, isOwn)
      if (fault === undefined) addresses.set(text, address)
      else faults.push(at(server, `found ${text}${who}, ${fault}`))
    }
  }
  return { addresses: [...addresses.values()], faults }
}

function at({ position }: UpstreamServer, message: string): Fault {
  return { position, message: `upstreams.servers: ${message}` }
}

function upstreamFault(
  address: SocketAddress,
  listeners: readonly ListenerConfig[],
  isOwn: IsOwnAddress,
): string | undefined {
  if (isUnspecified(address.octets)) return 'expected an address that can be asked'
  const own = listeners.find((listener) => isTakenBy(address, listener, isOwn))
  if (own === undefined) return undefined
  const { line } = own.position
  const place = line === 0 ? '' : ` of line ${line}`
  return `our own listener${place}, expected a server that isn't namegate itself`
}

/** Returns true if a packet to `address` reaches the listener. A listener on `::` takes IPv4 packets too. */
function isTakenBy(
  address: SocketAddress,
  { address: bound, port }: ListenerConfig,
  isOwn: IsOwnAddress,
): boolean {
  if (port !== address.port) return false
  if (bound === undefined) return isOwn(address.family, address.octets)
  if (isUnspecified(bound.octets)) {
    const sameFamily = bound.family === address.family || bound.family === 6
    return sameFamily && isOwn(address.family, address.octets)
  }
  return bound.family === address.family && sameOctets(bound.octets, address.octets)
}

export function isUnspecified(octets: Uint8Array): boolean {
  return octets.every((octet) => octet === 0)
}

export function sameOctets(a: Uint8Array, b: Uint8Array): boolean {
  return a.every((octet, i) => octet === b[i])
}
