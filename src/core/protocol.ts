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

export function formatProtocol(protocol: number): string {
  switch (protocol) {
    case ANY_PROTOCOL:
      return 'ANY'
    case TCP:
      return 'TCP'
    case UDP:
      return 'UDP'
    case SCTP:
      return 'SCTP'
    default:
      return String(protocol)
  }
}

/** For example `443/TCP` and `80-90/UDP`. `ANY` is everything. */
export function formatPortRange(range: PortRange): string {
  const protocol = formatProtocol(range.protocol)
  if (range.low === 0 && range.high === 65535) return protocol
  return `${range.low === range.high ? range.low : `${range.low}-${range.high}`}/${protocol}`
}
