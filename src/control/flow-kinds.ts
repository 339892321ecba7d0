// What flows are: the kinds of decisions and events that are recorded, and what is told of one. Values only; FlowRing has them.

/** What a flow tells. The first group are DNS decisions, the second packets. */
export const FLOW_KINDS = [
  'forwarded',
  'answered',
  'denied',
  'audited',
  'unknown-client',
  'interface-mismatch',
  'not-ready',
  'malformed',
  'overloaded',
  'upstream-failed',
  'drop',
  'audit',
  'policy-lost',
] as const
export type FlowKind = (typeof FLOW_KINDS)[number]

export const OUTCOMES = ['none', 'exact', 'degraded', 'held-out'] as const
export type Outcome = (typeof OUTCOMES)[number]

export interface FlowDetails {
  /** Wall-clock milliseconds. */
  readonly time: number
  readonly kind: FlowKind
  readonly endpoint: number
  readonly outcome: Outcome
  /** DNS: the name asked; undefined for packets. */
  readonly name: string | undefined
  readonly qtype: number
  readonly rcode: number
  /** DNS: addresses taught. */
  readonly addresses: number
  readonly family: number
  /** Packets: the peer's 16 octets. DNS: the client's. */
  readonly peer: Uint8Array
  readonly protocol: number
  readonly port: number
  readonly identity: number
  /** Number of the set of rules that denied it, or would have (RuleOrigins); 0: none did. */
  readonly rule: number
  /** Packets: names that the peer's address was known by when it was sent, the first few. */
  readonly names: readonly string[]
  /** Packets: why. DNS: what was wrong, which bound, or how the upstream failed; mostly empty. */
  readonly reason: string
}

/** A packet for `addPacket`. */
export interface PacketFlow {
  readonly kind: 'drop' | 'audit'
  readonly endpoint: number
  readonly family: number
  readonly peer: Uint8Array
  readonly protocol: number
  readonly port: number
  readonly identity: number
  readonly rule: number
  readonly names: readonly string[]
  readonly reason: string
}
