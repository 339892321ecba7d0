// What crosses the port to what enforces: entries that commits write, what becomes of them, and what the datapath reports.

import type { EndpointId, Generation, Identity, RuleId } from '../core/ids.ts'
import type { Family, Prefix } from '../core/ip.ts'
import type { PrefixBatch } from './prefix-batch.ts'

export type DatapathKind = 'memory' | 'ebpf' | 'nftables'
export type Mode = 'enforce' | 'audit' | 'bypass'
/**
 * `audit` lets pass and reports, unless a rule allows. `audit-deny` is what rules of audited policies deny: it takes nothing
 * away and gives nothing, but what passes is reported. `audit-pass` is both at one key.
 */
export type PolicyVerdict = 'allow' | 'deny' | 'audit' | 'audit-deny' | 'audit-pass'

/** (endpoint, identity, protocol, port prefix) -> verdict. Identity 0: whatever the identity. */
export interface PolicyKey {
  readonly endpoint: EndpointId
  readonly identity: Identity
  /** IP protocol; 0 with port 0/0: any protocol. */
  readonly protocol: number
  readonly port: number
  /** How many leading bits of `port` count, 0..16. */
  readonly portBits: number
}

export interface PolicyEntry extends PolicyKey {
  readonly verdict: PolicyVerdict
  /** What the entry came from; 0 for a default. */
  readonly rule: RuleId
}

/** Where an endpoint's packets pass: an interface (with the side on which its packets come in) or a cgroup. */
export type Hook =
  | { readonly kind: 'interface'; readonly name: string; readonly side: 'ingress' | 'egress' }
  | { readonly kind: 'cgroup'; readonly path: string }
  | { readonly kind: 'none' }

export interface EndpointEntry {
  readonly id: EndpointId
  readonly generation: Generation
  readonly hook: Hook
  /** False: judged, but never dropped. */
  readonly enforcing: boolean
  /** True: what would be dropped passes and is reported as `audit`. */
  readonly audit: boolean
  /** True: an entry of its own scope (`PrefixBatch.scope`) goes before the node's. Absent: false. */
  readonly scoped?: boolean
  /** Addresses it may send from; a cgroup endpoint uses the host's and has no source check. */
  readonly sources: readonly Prefix[]
}

/** One of namegate's own listeners: DNS to it needs no rule. An all-zero address means every address of the node. */
export interface ListenerEntry {
  readonly family: Family
  readonly octets: Uint8Array
  readonly port: number
}

/** One commit. Adapters apply the sections in exactly this order, so that no reader ever sees a hole. */
export interface Changes {
  /** New denies stand before new allows. */
  readonly policyUpserts: readonly PolicyEntry[]
  readonly prefixUpserts: PrefixBatch
  readonly endpointUpserts: readonly EndpointEntry[]
  readonly endpointRemovals: readonly EndpointId[]
  readonly prefixRemovals: PrefixBatch
  /** Old allows stand before old denies. */
  readonly policyRemovals: readonly PolicyKey[]
}

export type ChangeSection = 'policy' | 'prefix' | 'endpoint'

/** One entry that was refused; all others of the commit are in force. */
export interface CommitFailure {
  readonly section: ChangeSection
  readonly action: 'upsert' | 'remove'
  /** Position in its section's list. */
  readonly index: number
  /** Name of the error as in errno(3), e.g. `ENOSPC`. */
  readonly code: string
}

export type CommitResult = readonly CommitFailure[]

/** All entries were applied. */
export const COMMITTED: CommitResult = []

/** What stands between an endpoint and enforcement. */
export type HookState =
  | { readonly kind: 'attached' }
  | { readonly kind: 'unfenced' }
  /** `remade`: the hook is there again, but this generation was at the one before it. */
  | { readonly kind: 'waiting'; readonly reason: string; readonly remade?: boolean }
  | { readonly kind: 'failed'; readonly reason: string }

export interface DatapathEndpoint {
  readonly id: EndpointId
  readonly generation: Generation
  readonly enforcing: boolean
  readonly audit: boolean
  readonly scoped: boolean
  readonly sources: readonly Prefix[]
  /** `interface:4`, `cgroup:77`: what the kernel knows the hook by; empty when there is none. */
  readonly hookKey: string
}

/** Everything that is in force now, read back from where it is enforced. */
export interface DatapathDump {
  readonly mode: Mode
  readonly prefixes: PrefixBatch
  readonly policies: readonly PolicyEntry[]
  readonly endpoints: readonly DatapathEndpoint[]
}

export type DropReason = 'policy' | 'source' | 'malformed' | 'fragment'

/** A packet that was dropped, or would have been; sampled by the adapter. */
export interface DatapathEvent {
  /** `Clock.now()` when the packet was seen. */
  readonly seen: number
  /** Milliseconds from then until it was read, by a clock that goes on while the machine sleeps. */
  readonly age: number
  readonly verdict: 'deny' | 'audit'
  readonly reason: DropReason
  readonly endpoint: EndpointId
  readonly family: Family
  readonly peer: Uint8Array
  readonly protocol: number
  readonly port: number
  /** The port that it was sent from; 0 where there is none. */
  readonly localPort: number
  /** The first packet of a TCP connection. */
  readonly opening: boolean
  readonly identity: Identity
  readonly rule: RuleId
}
