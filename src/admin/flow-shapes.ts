// The lines of `/v1/flows`: one JSON object for each flow, of one of four forms (docs/spec/promises "Outside contracts").
// Types only, because the library gives the same objects.

import type { FlowKind } from '../flows/record/flow-kinds.ts'

export type FlowVerdict = 'allow' | 'deny' | 'audit' | 'error' | 'event'

/** Packets that were dropped, or would have been. */
export type PacketFlowKind = 'drop' | 'audit'
/** An endpoint lost its last policy; or it connected to an address of a name whose TTL was over. */
export type EventFlowKind = 'policy-lost' | 'expired-use'
/** Queries and what became of them. */
export type DnsFlowKind = Exclude<FlowKind, PacketFlowKind | EventFlowKind>

interface FlowBase {
  /** Counts up from the start of the daemon. */
  readonly number: number
  readonly time: string
  readonly verdict: FlowVerdict
  /** Null when nobody known sent it, or the endpoint is gone. */
  readonly endpoint: string | null
  /** The endpoint's; empty where it is null. */
  readonly endpointLabels: readonly string[]
}

/** A rule, or for what no rule allows a policy that turns default deny on. */
export interface FlowRuleShape {
  /** `namespace/name`, or the name alone of a clusterwide policy. */
  readonly policy: string
  readonly file: string
  readonly line: number
}

export interface DnsFlowShape extends FlowBase {
  readonly kind: DnsFlowKind
  readonly client: string
  /** Null when the ring no longer has it. */
  readonly name: string | null
  readonly type: string
  /** Null unless answered by a server. */
  readonly rcode: string | null
  readonly outcome: string | null
  /** Addresses taught. */
  readonly addresses: number
  /** What was wrong with the query, which bound it met, why it was denied though policy allows it (`server`, `sources-silent`), or how
   *  the upstream failed; null when there is none. */
  readonly reason: string | null
  /** What denied the name, or would have; empty for what was not denied, or by no policy. */
  readonly rules: readonly FlowRuleShape[]
}

export interface PacketFlowShape extends FlowBase {
  readonly kind: PacketFlowKind
  readonly peer: string
  readonly protocol: string
  readonly port: number
  readonly identity: number
  /** The peer's. */
  readonly labels: readonly string[]
  /** Names that the peer was known by when the packet was sent, the first few. */
  readonly names: readonly string[]
  /** Whether a deny rule did, so that no allow would help, or that no rule allows it; null for other reasons. */
  readonly deniedBy: 'rule' | 'default' | null
  /** What denied the packet, or would have; empty where a default or another reason did. */
  readonly rules: readonly FlowRuleShape[]
  readonly reason: string
}

export interface PolicyLostShape extends FlowBase {
  readonly kind: 'policy-lost'
  readonly policies: string
}

export interface ExpiredUseShape extends FlowBase {
  readonly kind: 'expired-use'
  /** The address that it connected to. */
  readonly peer: string
  /** The name whose TTL was over; empty when the ring no longer has it. */
  readonly names: readonly string[]
  /** Seconds since the end of the TTL when the connection was seen. */
  readonly expired: number
}

export type FlowShape = DnsFlowShape | PacketFlowShape | PolicyLostShape | ExpiredUseShape
