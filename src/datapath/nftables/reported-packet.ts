// This file reads the beginning of a packet that nflog reported: its peer and its ports. The rules have already judged the
// packet, so this reader refuses only packets that are too short. Fragments and protocols without ports have port 0.

import type { Family } from '../../core/ip.ts'
import { SCTP, TCP, UDP } from '../../core/protocol.ts'

export interface ReportedPacket {
  readonly family: Family
  readonly protocol: number
  /** 16 octets, IPv4 in the first 4. */
  readonly target: Uint8Array
  /** For an ICMP echo, both ports are its identifier. */
  readonly sourcePort: number
  readonly targetPort: number
  /** True for the first packet of a TCP connection. */
  readonly opening: boolean
}

const IPV4_HEADER = 20
const IPV6_HEADER = 40
const ICMP = 1
const ICMP6 = 58
const FRAGMENT = 44
/** Hop-by-hop options, fragment, destination options. */
const EXTENSIONS: readonly number[] = [0, FRAGMENT, 60]
const SYN = 0x02
/** FIN, SYN, RST and ACK. */
const TCP_FLAGS = 0x17

/** The family that the first octet names. Anything except IPv6 gives 4. */
export function familyOf(octets: Uint8Array): Family {
  return (octets[0] ?? 0) >> 4 === 6 ? 6 : 4
}

export function readReportedPacket(octets: Uint8Array): ReportedPacket | undefined {
  return familyOf(octets) === 6 ? readIpv6(octets) : readIpv4(octets)
}

function readIpv4(octets: Uint8Array): ReportedPacket | undefined {
  const head = ((octets[0] ?? 0) & 15) * 4
  if (octets.length < IPV4_HEADER || head < IPV4_HEADER) return undefined
  const target = new Uint8Array(16)
  target.set(octets.subarray(16, 20))
  const isLaterFragment = (word(octets, 6) & 0x1fff) !== 0
  return readTransport(octets, isLaterFragment ? undefined : head, {
    family: 4,
    protocol: octets[9] ?? 0,
    target,
  })
}

function readIpv6(octets: Uint8Array): ReportedPacket | undefined {
  if (octets.length < IPV6_HEADER) return undefined
  const target = octets.slice(24, 40)
  let protocol = octets[6] ?? 0
  let at = IPV6_HEADER
  while (EXTENSIONS.includes(protocol)) {
    if (at + 8 > octets.length) return undefined
    const next = octets[at] ?? 0
    if (protocol === FRAGMENT && word(octets, at + 2) >> 3 !== 0) {
      return readTransport(octets, undefined, { family: 6, protocol: next, target })
    }
    at += protocol === FRAGMENT ? 8 : ((octets[at + 1] ?? 0) + 1) * 8
    protocol = next
  }
  return readTransport(octets, at, { family: 6, protocol, target })
}

/** `at` is where the transport header begins. It is undefined for a later fragment, which has no transport header. */
function readTransport(
  octets: Uint8Array,
  at: number | undefined,
  network: Pick<ReportedPacket, 'family' | 'protocol' | 'target'>,
): ReportedPacket | undefined {
  const none = { ...network, sourcePort: 0, targetPort: 0, opening: false }
  if (at === undefined) return none
  switch (network.protocol) {
    case TCP:
    case UDP:
    case SCTP: {
      if (at + 8 > octets.length) return undefined
      const isTcp = network.protocol === TCP
      const opening = isTcp && ((octets[at + 13] ?? 0) & TCP_FLAGS) === SYN
      return { ...none, sourcePort: word(octets, at), targetPort: word(octets, at + 2), opening }
    }
    case ICMP:
    case ICMP6: {
      if (at + 8 > octets.length) return undefined
      const identifier = word(octets, at + 4)
      return { ...none, sourcePort: identifier, targetPort: identifier }
    }
    default:
      return none
  }
}

function word(octets: Uint8Array, at: number): number {
  return ((octets[at] ?? 0) << 8) | (octets[at + 1] ?? 0)
}
