// A socket that somebody else bound and gave us: whoever started us (systemd/activation.ts), or the daemon before us
// (handover/). What it is comes from the kernel, never from who gave it.

import { UnavailableError } from '../core/errors.ts'
import { formatAddress, type Family } from '../core/ip.ts'
import { errnoName, type Posix } from './native.ts'

/** A bound socket that somebody gave us; the descriptor is ours. */
export interface PassedSocket {
  readonly descriptor: number
  readonly transport: 'UDP' | 'TCP'
  readonly family: Family
  /** 16 octets, IPv4 in the first 4; all zero: every address. */
  readonly octets: Uint8Array
  readonly port: number
  /** Takes what is sent to other hosts' addresses. */
  readonly transparent: boolean
  /** Takes IPv4 as well, on an address of IPv6. */
  readonly mixed: boolean
}

const STREAM = 1
const DATAGRAM = 2

/** What a descriptor is; from now on it is not passed on to programs, and never waits. Throws UnavailableError. */
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

/** `UDP 127.0.0.1:53` */
export function describeSocket({ transport, family, octets, port }: PassedSocket): string {
  const address = formatAddress(family, octets)
  return `${transport} ${family === 4 ? address : `[${address}]`}:${port}`
}
