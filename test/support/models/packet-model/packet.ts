// Reads one packet like the kernel side. src/datapath/ebpf/programs/packet.h has the reason for each refusal. The contract suite gives
// both the same octets. For tests and the demo, not for speed.

import type { Family } from '../../../../src/core/ip.ts'
import { SCTP, TCP, UDP } from '../../../../src/core/protocol.ts'

export const ICMP = 1
export const ICMP6 = 58

export const TCP_FIN = 0x01
export const TCP_SYN = 0x02
export const TCP_RST = 0x04
export const TCP_ACK = 0x10

export interface Packet {
  readonly family: Family
  readonly protocol: number
  /** A fragment after the first one, which has no ports. */
  readonly laterFragment: boolean
  /** Has IPv4 options, IPv6 extension headers or more fragments, so readers can disagree about its ports. */
  readonly adorned: boolean
  readonly hopLimit: number
  readonly tcpFlags: number
  readonly icmpType: number
  readonly icmpCode: number
  /** For an ICMP echo: its identifier, in both fields. */
  readonly sourcePort: number
  readonly targetPort: number
  /** 16 octets, IPv4 in the first 4. */
  readonly source: Uint8Array
  readonly target: Uint8Array
  /** From the transport header to the end of the packet. */
  readonly transport: Uint8Array
}

export type ReadResult =
  | { readonly kind: 'ip'; readonly packet: Packet }
  | { readonly kind: 'arp' }
  | { readonly kind: 'malformed' }

const MALFORMED: ReadResult = { kind: 'malformed' }
const ETHERNET_HEADER = 14
const FRAGMENT = 44
const ROUTING = 43
const EXTENSIONS: readonly number[] = [0, ROUTING, FRAGMENT, 60]
const EXTENSIONS_MAX = 8
/** Minimum octets of the header of a protocol. */
const HEADER: Readonly<Record<number, number>> = {
  [TCP]: 20,
  [UDP]: 8,
  [SCTP]: 12,
  [ICMP]: 8,
  [ICMP6]: 8,
}

/** An Ethernet frame; up to two VLAN tags. */
export function readFrame(frame: Uint8Array): ReadResult {
  let at = 12
  for (let tags = 0; tags < 2 && isVlan(word(frame, at)); tags++) at += 4
  const packet = frame.subarray(at + 2)
  switch (word(frame, at)) {
    case 0x0800:
      return readIpv4(packet)
    case 0x86dd:
      return readIpv6(packet)
    case 0x0806:
      return { kind: 'arp' }
    default:
      return MALFORMED
  }
}

/** Reads a packet without link header, as a cgroup program sees it. */
export function readNetwork(frame: Uint8Array): ReadResult {
  const packet = frame.subarray(ETHERNET_HEADER)
  return octet(packet, 0) >> 4 === 6 ? readIpv6(packet) : readIpv4(packet)
}

/** Whether a frame has a VLAN tag. */
export function isTagged(frame: Uint8Array): boolean {
  return isVlan(word(frame, 12))
}

function isVlan(type: number): boolean {
  return type === 0x8100 || type === 0x88a8
}

/** The facts about a packet that come before its transport header. */
interface Network {
  readonly family: Family
  readonly hopLimit: number
  readonly source: Uint8Array
  readonly target: Uint8Array
}

function readIpv4(packet: Uint8Array): ReadResult {
  const head = (octet(packet, 0) & 15) * 4
  const total = word(packet, 2)
  if (packet.length < 20 || octet(packet, 0) >> 4 !== 4 || head < 20) return MALFORMED
  if (total < head || total > packet.length || !areOptionsPlain(packet.subarray(20, head))) {
    return MALFORMED
  }
  const network: Network = {
    family: 4,
    hopLimit: octet(packet, 8),
    source: address4(packet, 12),
    target: address4(packet, 16),
  }
  const fragment = word(packet, 6) & 0x1fff
  const isAdorned = head > 20 || (word(packet, 6) & 0x3fff) !== 0
  const transport = packet.subarray(head, total)
  return readTransport(network, octet(packet, 9), transport, fragment, isAdorned)
}

/** Whether the options are only padding and router alert. */
function areOptionsPlain(options: Uint8Array): boolean {
  for (let at = 0; at < options.length; at += 4) {
    const option = (word(options, at) << 16) | word(options, at + 2)
    if ((option & 0xfefefefe) !== 0 && option !== (0x94040000 | 0)) return false
  }
  return true
}

function readIpv6(packet: Uint8Array): ReadResult {
  const end = 40 + word(packet, 4)
  if (packet.length < 40 || octet(packet, 0) >> 4 !== 6 || end > packet.length) return MALFORMED
  const network: Network = {
    family: 6,
    hopLimit: octet(packet, 7),
    source: packet.slice(8, 24),
    target: packet.slice(24, 40),
  }
  return readExtensions(network, packet.subarray(0, end))
}

function readExtensions(network: Network, packet: Uint8Array): ReadResult {
  let protocol = octet(packet, 6)
  let at = 40
  for (let count = 0; EXTENSIONS.includes(protocol); count++) {
    if (count === EXTENSIONS_MAX || at + 8 > packet.length) return MALFORMED
    const next = octet(packet, at)
    if (protocol === FRAGMENT) {
      const fragment = word(packet, at + 2) >> 3
      at += 8
      if (fragment !== 0) {
        return readTransport(network, next, packet.subarray(at), fragment, true)
      }
    } else {
      if (protocol === ROUTING) return MALFORMED
      at += (octet(packet, at + 1) + 1) * 8
    }
    protocol = next
    if (at > packet.length) return MALFORMED
  }
  return readTransport(network, protocol, packet.subarray(at), 0, at > 40)
}

function readTransport(
  network: Network,
  protocol: number,
  transport: Uint8Array,
  fragment: number,
  adorned: boolean,
): ReadResult {
  const plain = { ...network, protocol, transport, adorned, laterFragment: fragment !== 0 }
  const none = { tcpFlags: 0, icmpType: 0, icmpCode: 0, sourcePort: 0, targetPort: 0 }
  if (fragment !== 0) {
    if (fragment === 1 && protocol === TCP) return MALFORMED
    return { kind: 'ip', packet: { ...plain, ...none } }
  }
  const needed = HEADER[protocol]
  if (needed === undefined) return { kind: 'ip', packet: { ...plain, ...none } }
  if (transport.length < needed) return MALFORMED
  if (protocol === TCP && octet(transport, 12) >> 4 < 5) return MALFORMED
  if (protocol === ICMP || protocol === ICMP6) {
    const port = word(transport, 4)
    const [icmpType, icmpCode] = [octet(transport, 0), octet(transport, 1)]
    const ports = { sourcePort: port, targetPort: port }
    return { kind: 'ip', packet: { ...plain, ...none, ...ports, icmpType, icmpCode } }
  }
  const tcpFlags = protocol === TCP ? octet(transport, 13) : 0
  const ports = { sourcePort: word(transport, 0), targetPort: word(transport, 2) }
  return { kind: 'ip', packet: { ...plain, ...none, ...ports, tcpFlags } }
}

function octet(octets: Uint8Array, at: number): number {
  return octets[at] ?? 0
}

function word(octets: Uint8Array, at: number): number {
  return (octet(octets, at) << 8) | octet(octets, at + 1)
}

function address4(octets: Uint8Array, at: number): Uint8Array {
  const address = new Uint8Array(16)
  address.set(octets.subarray(at, at + 4))
  return address
}

/** Protocols whose connections are followed. */
export function isFollowed({ protocol, laterFragment }: Packet): boolean {
  return !laterFragment && (protocol === TCP || protocol === UDP || protocol === SCTP)
}

/** An ICMP echo request, or the reply to one. */
export function isEcho({ family, protocol, icmpType }: Packet, way: 'request' | 'reply'): boolean {
  if (family === 4) return protocol === ICMP && icmpType === (way === 'reply' ? 0 : 8)
  return protocol === ICMP6 && icmpType === (way === 'reply' ? 129 : 128)
}
