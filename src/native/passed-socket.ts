// A passed socket was bound by another process: either the process that started this one (systemd/activation.ts), or the previous
// daemon (handover/). readSocket asks the kernel what kind of socket it is, and does not rely on the process that passed it.

import { UnavailableError } from '../core/errors.ts'
import { formatAddress, type Family } from '../core/ip.ts'
import { errnoName, type Posix } from './native.ts'

/** A bound socket from another process. This process owns the descriptor. */
export interface PassedSocket {
  readonly descriptor: number
  readonly transport: 'UDP' | 'TCP'
  readonly family: Family
  /** 16 octets, IPv4 in the first 4. All zero means every address. */
  readonly octets: Uint8Array
  readonly port: number
  /** True if the socket also receives packets to other hosts' addresses. */
  readonly transparent: boolean
  /** True if an IPv6 socket also receives IPv4. */
  readonly mixed: boolean
}

const STREAM = 1
const DATAGRAM = 2

/** Returns facts about a descriptor, and makes it close-on-exec and non-blocking. Throws UnavailableError. */
export function readSocket(posix: Posix, descriptor: number, name: string): PassedSocket {
  const octets = new Uint8Array(16)
  const facts = posix.socketFacts(descriptor, octets)
  const title = `passed socket ${descriptor} (${name})`
  if (typeof facts === 'number') {
    throw new UnavailableError(
      `Cannot take ${title}: ${errnoName(facts)}: only UDP and TCP sockets of listeners can be taken`,
    )
  }
  const [family, type, port = 0, listens, transparent, onlyIpv6] = facts
  const shared = {
    descriptor,
    family: family === 4 ? 4 : 6,
    octets,
    port,
    transparent: transparent === 1,
    mixed: family === 6 && onlyIpv6 === 0,
  } as const
  if (type === DATAGRAM) return { ...shared, transport: 'UDP' }
  if (type === STREAM && listens === 1) return { ...shared, transport: 'TCP' }
  const fault = type === STREAM ? 'it does not listen (Accept=no?)' : `it is of type ${type}`
  throw new UnavailableError(`Cannot take ${title}: ${fault}`)
}

/** Returns, for example, `UDP 127.0.0.1:53`. */
export function describeSocket({ transport, family, octets, port }: PassedSocket): string {
  const address = formatAddress(family, octets)
  return `${transport} ${family === 4 ? address : `[${address}]`}:${port}`
}
