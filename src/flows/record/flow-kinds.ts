// Kinds of flows, outcomes, and the details of one flow. Values and types only; FlowRing stores them.

/** What a flow tells. The first group are DNS decisions, the second packets, the last events. */
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
  /** An endpoint lost its last policy (docs/spec/semantics 2). */
  'policy-lost',
  /** An endpoint connected to an address of a name whose TTL was over: it keeps answers for longer than they hold. */
  'expired-use',
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
  /** DNS: the name asked; of an expired use, the name that is over; undefined for packets. */
  readonly name: string | undefined
  readonly qtype: number
  readonly rcode: number
  /** DNS: addresses taught. */
  readonly addresses: number
  readonly family: number
  /** Packets and expired uses: the peer's 16 octets. DNS: the client's. */
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
  /** Expired uses: seconds since the end of the TTL. */
  readonly expired: number
}

/** For `addExpiredUse`. */
export interface ExpiredUse {
  readonly endpoint: number
  readonly family: number
  /** The address begins at `addressAt`, 16 octets or 4. */
  readonly octets: Uint8Array
  readonly addressAt: number
  /** The name in wire form begins at `nameAt`. */
  readonly wire: Uint8Array
  readonly nameAt: number
  readonly nameLength: number
  /** Seconds since the end of the TTL. */
  readonly expired: number
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
