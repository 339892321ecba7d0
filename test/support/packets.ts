// Makes packets as octets, for the kernel programs and their model: text in, Ethernet frames out. Checksums are zero, because the
// judged path ignores them. Every field can be made wrong on purpose.

import { parseAddress } from '../../src/core/ip.ts'

export const FIN = 0x01
export const SYN = 0x02
export const RST = 0x04
export const PSH = 0x08
export const ACK = 0x10

const ETHERTYPE = { ip4: 0x0800, ip6: 0x86dd, arp: 0x0806, vlan: 0x8100, qinq: 0x88a8 } as const

export interface Segment {
  readonly protocol: number
  readonly octets: Uint8Array
}

export interface Ports {
  readonly from: number
  readonly to: number
}

export function tcp(ports: Ports, flags: number, more: { readonly offset?: number } = {}): Segment {
  const octets = new Uint8Array(20)
  setPorts(octets, ports)
  octets[12] = (more.offset ?? 5) << 4
  octets[13] = flags
  return { protocol: 6, octets }
}

export function udp(ports: Ports, payload = new Uint8Array(12)): Segment {
  const octets = join(new Uint8Array(8), payload)
  setPorts(octets, ports)
  setWord(octets, 4, octets.length)
  return { protocol: 17, octets }
}

export function sctp(ports: Ports): Segment {
  const octets = new Uint8Array(16)
  setPorts(octets, ports)
  return { protocol: 132, octets }
}

/** An ICMP message of either family. `identifier` is in the place that echo uses. */
export function icmp(
  protocol: 1 | 58,
  type: number,
  more: { readonly code?: number; readonly identifier?: number; readonly body?: Uint8Array } = {},
): Segment {
  const octets = join(new Uint8Array(8), more.body ?? new Uint8Array(16))
  octets[0] = type
  octets[1] = more.code ?? 0
  setWord(octets, 4, more.identifier ?? 0)
  return { protocol, octets }
}

/** A neighbour solicitation (135) or advertisement (136) for `target`. */
export function discovery(type: number, target: string): Segment {
  return icmp(58, type, { body: address(target) })
}

/** Any other protocol. */
export function raw(protocol: number, octets = new Uint8Array(24)): Segment {
  return { protocol, octets }
}

export interface Route {
  readonly source: string
  readonly target: string
  readonly hopLimit?: number
  /** Fragment offset in units of 8 octets. */
  readonly fragment?: number
  readonly moreFragments?: boolean
  /** Of IPv4, a multiple of 4 octets. */
  readonly options?: Uint8Array
  /** Of IPv6, in order. */
  readonly extensions?: readonly Extension[]
  /** Written in the length field in place of the true length. */
  readonly length?: number
  readonly version?: number
  /** Outermost first. */
  readonly vlans?: readonly ('vlan' | 'qinq')[]
}

/** An IPv6 extension header. `body` has everything after the first two octets. */
export interface Extension {
  readonly type: number
  readonly body: Uint8Array
}

export const hopByHop: Extension = { type: 0, body: new Uint8Array(6) }
export const destinationOptions: Extension = { type: 60, body: new Uint8Array(6) }

export function routing(segmentsLeft: number): Extension {
  return { type: 43, body: Uint8Array.of(0, segmentsLeft, 0, 0, 0, 0) }
}

/** A frame that carries the segment over IPv4 or IPv6, by the family of the addresses. */
export function frame(route: Route, segment: Segment): Uint8Array {
  const isIp6 = route.source.includes(':')
  const packet = isIp6 ? ipv6(route, segment) : ipv4(route, segment)
  return ethernet(isIp6 ? ETHERTYPE.ip6 : ETHERTYPE.ip4, packet, route.vlans)
}

export function arp(): Uint8Array {
  return ethernet(ETHERTYPE.arp, new Uint8Array(28))
}

/** A frame of any type. */
export function ethernet(
  type: number,
  payload: Uint8Array,
  vlans: readonly ('vlan' | 'qinq')[] = [],
): Uint8Array {
  const header = new Uint8Array(14 + vlans.length * 4)
  header.set([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2])
  vlans.forEach((tag, i) => {
    setWord(header, 12 + i * 4, ETHERTYPE[tag])
    setWord(header, 14 + i * 4, 7)
  })
  setWord(header, header.length - 2, type)
  return join(header, payload)
}

function ipv4(route: Route, segment: Segment): Uint8Array {
  const options = route.options ?? new Uint8Array(0)
  const header = new Uint8Array(20 + options.length)
  header[0] = ((route.version ?? 4) << 4) | (header.length / 4)
  setWord(header, 2, route.length ?? header.length + segment.octets.length)
  setWord(header, 6, (route.moreFragments === true ? 0x2000 : 0) | (route.fragment ?? 0))
  header[8] = route.hopLimit ?? 64
  header[9] = segment.protocol
  header.set(address(route.source).subarray(0, 4), 12)
  header.set(address(route.target).subarray(0, 4), 16)
  header.set(options, 20)
  return join(header, segment.octets)
}

function ipv6(route: Route, segment: Segment): Uint8Array {
  const header = new Uint8Array(40)
  const chain = [...(route.extensions ?? []), ...fragmentHeader(route)]
  const types = [...chain.map((extension) => extension.type), segment.protocol]
  const headers = chain.map(({ body, type }, i) => {
    const units =
      type === 44 ? 0 : type === 51 ? (body.length + 2) / 4 - 2 : (body.length + 2) / 8 - 1
    return join(Uint8Array.of(types[i + 1] ?? 59, units), body)
  })
  const payload = join(...headers, segment.octets)
  header[0] = (route.version ?? 6) << 4
  setWord(header, 4, route.length ?? payload.length)
  header[6] = types[0] ?? 59
  header[7] = route.hopLimit ?? 64
  header.set(address(route.source), 8)
  header.set(address(route.target), 24)
  return join(header, payload)
}

function fragmentHeader(route: Route): readonly Extension[] {
  if (route.fragment === undefined && route.moreFragments === undefined) return []
  const body = new Uint8Array(6)
  setWord(body, 0, ((route.fragment ?? 0) << 3) | (route.moreFragments === true ? 1 : 0))
  return [{ type: 44, body }]
}

/** 16 octets; IPv4 is in the first 4. */
export function address(text: string): Uint8Array {
  const parsed = parseAddress(text)
  if (parsed === undefined) throw new Error(`Not an address: ${text}`)
  return parsed.octets
}

export function join(...parts: readonly Uint8Array[]): Uint8Array {
  return Uint8Array.from(parts.flatMap((part) => [...part]))
}

function setWord(octets: Uint8Array, at: number, value: number): void {
  octets[at] = value >> 8
  octets[at + 1] = value & 0xff
}

function setPorts(octets: Uint8Array, ports: Ports): void {
  setWord(octets, 0, ports.from)
  setWord(octets, 2, ports.to)
}
