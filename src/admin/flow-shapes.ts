// Types of the lines of `/v1/flows`: one JSON object for each flow, in one of four forms (docs/spec/promises "Outside contracts"). The
// library returns the same objects, so this file has types only.

import type { FlowKind } from '../flows/record/flow-kinds.ts'

export type FlowVerdict = 'allow' | 'deny' | 'audit' | 'error' | 'event'

/** Packets that were dropped, and packets that would have been dropped without audit. */
export type PacketFlowKind = 'drop' | 'audit'
/** An endpoint lost its last policy (`policy-lost`), or connected to an address after the TTL of the address' name (`expired-use`). */
export type EventFlowKind = 'policy-lost' | 'expired-use'
/** DNS queries, by what was decided. */
export type DnsFlowKind = Exclude<FlowKind, PacketFlowKind | EventFlowKind>

interface FlowBase {
  /** Number of the flow. The first flow after the start of the daemon has number 0. */
  readonly number: number
  readonly time: string
  readonly verdict: FlowVerdict
  /** Null when the client is no known endpoint, or the endpoint was removed. */
  readonly endpoint: string | null
  /** Labels of the endpoint. Empty when `endpoint` is null. */
  readonly endpointLabels: readonly string[]
}

/** A rule that decided. If no rule allowed the name or packet, a policy that turned default deny on. */
export interface FlowRuleShape {
  /** `namespace/name`. A clusterwide policy has only a name. */
  readonly policy: string
  readonly file: string
  readonly line: number
}

export interface DnsFlowShape extends FlowBase {
  readonly kind: DnsFlowKind
  /** The client's address, or `namegate` when namegate asked itself, by `ask --as` or `dns.prewarm`. */
  readonly client: string
  /** Null when the ring has overwritten the name. */
  readonly name: string | null
  readonly type: string
  /** The code of the server's answer. Null when no server answered. */
  readonly rcode: string | null
  readonly outcome: string | null
  /** How many addresses namegate learned from the answer. */
  readonly addresses: number
  /**
   * The fault of the query, the bound that was hit, or how the upstream failed. `server` and `sources-silent`: why the query was denied
   * although policy allows the name. Null for other flows.
   */
  readonly reason: string | null
  /** Rules that denied the name, or would have denied it without audit. Empty when no policy denies it. */
  readonly rules: readonly FlowRuleShape[]
}

export interface PacketFlowShape extends FlowBase {
  readonly kind: PacketFlowKind
  readonly peer: string
  readonly protocol: string
  readonly port: number
  readonly identity: number
  /** Labels of the peer's identity. */
  readonly labels: readonly string[]
  /** The first few names by which the peer was known when the packet was sent. */
  readonly names: readonly string[]
  /** `rule`: a deny rule, which no allow rule can outweigh. `default`: no rule allows the packet. Null for other reasons. */
  readonly deniedBy: 'rule' | 'default' | null
  /** Rules that denied the packet, or would have denied it without audit. Empty when there is no such rule. */
  readonly rules: readonly FlowRuleShape[]
  readonly reason: string
}

export interface PolicyLostShape extends FlowBase {
  readonly kind: 'policy-lost'
  readonly policies: string
}

export interface ExpiredUseShape extends FlowBase {
  readonly kind: 'expired-use'
  /** The address to which the endpoint connected. */
  readonly peer: string
  /** The name whose TTL was over. Empty when the ring has overwritten the name. */
  readonly names: readonly string[]
  /** Seconds from the end of the TTL until the connection was seen. */
  readonly expired: number
}

export type FlowShape = DnsFlowShape | PacketFlowShape | PolicyLostShape | ExpiredUseShape
