// Defines the IP protocols that policy can name, by their IANA number, and the ranges of ports that a rule covers.

/** Stands for every protocol, also ICMP. */
export const ANY_PROTOCOL = 0
export const TCP = 6
export const UDP = 17
export const SCTP = 132

/** Protocols that have ports. */
export const PORT_PROTOCOLS: readonly number[] = [TCP, UDP, SCTP]

/** Protocols that carry DNS. */
export type DnsProtocol = typeof UDP | typeof TCP

/** One value for each protocol that carries DNS. */
export type ByDnsProtocol<T> = Readonly<Record<DnsProtocol, T>>

/** Makes a value for each protocol that carries DNS. If `isSame` returns true, both protocols have one object. */
export function byDnsProtocol<T>(
  make: (protocol: DnsProtocol) => T,
  isSame: (udp: T, tcp: T) => boolean,
): ByDnsProtocol<T> {
  const [udp, tcp] = [make(UDP), make(TCP)]
  return { [UDP]: udp, [TCP]: isSame(udp, tcp) ? udp : tcp }
}

/** Ports `low..high` of one protocol. Protocol 0 always covers ports 0..65535 and every protocol. */
export interface PortRange {
  readonly protocol: number
  readonly low: number
  readonly high: number
}

export const EVERYTHING: PortRange = { protocol: ANY_PROTOCOL, low: 0, high: 65535 }

const NAMES: ReadonlyMap<number, string> = new Map([
  [ANY_PROTOCOL, 'ANY'],
  [1, 'ICMP'],
  [TCP, 'TCP'],
  [UDP, 'UDP'],
  [58, 'ICMPv6'],
  [SCTP, 'SCTP'],
])

/** Returns the name of a protocol, or its number as text if it has no name here. */
export function formatProtocol(protocol: number): string {
  return NAMES.get(protocol) ?? String(protocol)
}

/** Returns the protocol with this name, in any case. Undefined for any other text. */
export function parseProtocol(text: string): number | undefined {
  const upper = text.toUpperCase()
  return [...NAMES].find(([, name]) => name.toUpperCase() === upper)?.[0]
}

/** For example `443/TCP`, and `ICMP` for a protocol without ports. */
export function formatPort(protocol: number, port: number): string {
  const name = formatProtocol(protocol)
  return PORT_PROTOCOLS.includes(protocol) ? `${port}/${name}` : name
}

/** For example `443/TCP` and `80-90/UDP`. `ANY` is everything. */
export function formatPortRange(range: PortRange): string {
  const protocol = formatProtocol(range.protocol)
  if (range.low === 0 && range.high === 65535) return protocol
  return `${range.low === range.high ? range.low : `${range.low}-${range.high}`}/${protocol}`
}
