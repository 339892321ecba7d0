// Defines the kinds of flows, the outcomes, the records that FlowRing takes, and the details that it returns.

/** All kinds: DNS decisions first, then packets (`drop`, `audit`), then events. */
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
  /** An endpoint connected to an address after the TTL of the address' name was over. The endpoint keeps answers longer than their TTL. */
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
  /** DNS: the name in the question. Expired use: the name whose TTL is over. Packets: undefined. */
  readonly name: string | undefined
  readonly qtype: number
  readonly rcode: number
  /** DNS: how many addresses namegate learned from the answer. */
  readonly addresses: number
  readonly family: number
  /** Packets and expired uses: the peer's 16 octets. DNS: the client's 16 octets. */
  readonly peer: Uint8Array
  readonly protocol: number
  readonly port: number
  readonly identity: number
  /** Number of the set of rules that denied the question or packet, or that would deny it without audit (RuleOrigins). 0: no rule. */
  readonly rule: number
  /** Packets: the first few names by which the peer's address was known when the packet was sent. */
  readonly names: readonly string[]
  /** Packets: why. DNS: what was wrong, which bound was hit, or how the upstream failed. Empty for most flows. */
  readonly reason: string
  /** Expired uses: seconds since the end of the TTL. */
  readonly expired: number
}

/** A DNS decision for `addDns`. The ring copies the record, so its owner can fill in the same record again. */
export interface DnsFlow {
  /** Index into FLOW_KINDS. */
  kind: number
  /** Index into OUTCOMES. */
  outcome: number
  endpoint: number
  /** The name in wire form, whose letters are in any case. It begins at `nameAt`. */
  wire: Uint8Array
  nameAt: number
  nameLength: number
  qtype: number
  rcode: number
  /** How many addresses namegate learned from the answer. */
  addresses: number
  family: number
  /** The client's 16 octets: four words that begin at `clientAt`. */
  clients: Uint32Array
  clientAt: number
  reason: string
  rule: number
}

/** Makes an empty record. */
export function makeDnsFlow(): DnsFlow {
  return {
    kind: 0,
    outcome: 0,
    endpoint: 0,
    wire: new Uint8Array(0),
    nameAt: 0,
    nameLength: 0,
    qtype: 0,
    rcode: 0,
    addresses: 0,
    family: 4,
    clients: new Uint32Array(4),
    clientAt: 0,
    reason: '',
    rule: 0,
  }
}

/** A use of an address after its TTL, for `addExpiredUse`. */
export interface ExpiredUse {
  readonly endpoint: number
  readonly family: number
  /** The address begins at `addressAt` and has 4 octets (IPv4) or 16. */
  readonly octets: Uint8Array
  readonly addressAt: number
  /** The name in wire form. It begins at `nameAt`. */
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
  /** A name of the peer that had expired, in wire form. Undefined if `names` is not empty, or if no such name is remembered. */
  readonly expiredName?: Uint8Array | undefined
  readonly reason: string
}
