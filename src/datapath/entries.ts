// This file declares the data that the datapath interface exchanges: entries that commits write, results of commits, and reports.

import type { EndpointId, Generation, Identity, RuleId } from '../core/ids.ts'
import type { Family, Prefix } from '../core/ip.ts'
import type { PrefixBatch } from './prefix-batch.ts'

export type DatapathKind = 'memory' | 'ebpf' | 'nftables'
/** `enforce`: policy applies. `audit`: packets that policy denies pass and are reported. `bypass`: nothing is enforced. */
export type Mode = 'enforce' | 'audit' | 'bypass'
/**
 * `audit`: lets a packet pass, and reports it if no rule allows it.
 * `audit-deny`: a rule of an audited policy denies. It neither drops a packet nor lets it pass. If another entry lets the packet pass, the
 * packet is reported.
 * `audit-pass`: an `audit-deny` and something that lets a packet pass, at the same key. The packet passes and is reported.
 * `weak-deny`: denies the packet if no other key has an entry that matches; else it means nothing.
 */
export type PolicyVerdict = 'allow' | 'deny' | 'audit' | 'audit-deny' | 'audit-pass' | 'weak-deny'

/** The key of a policy entry: (endpoint, identity, protocol, port prefix). Identity 0 matches every identity. */
export interface PolicyKey {
  readonly endpoint: EndpointId
  readonly identity: Identity
  /** The IP protocol. 0 matches any protocol; then `port` and `portBits` are 0. */
  readonly protocol: number
  readonly port: number
  /** How many leading bits of `port` have to match, 0..16. */
  readonly portBits: number
}

/** One entry of a policy map. */
export interface PolicyEntry extends PolicyKey {
  readonly verdict: PolicyVerdict
  /** The number of the set of rules that made the entry (RuleOrigins); 0 for a default. */
  readonly rule: RuleId
}

/** Where an endpoint's packets are judged: an interface or a cgroup. `side`: the side of the interface on which the packets come in. */
export type Hook =
  | { readonly kind: 'interface'; readonly name: string; readonly side: 'ingress' | 'egress' }
  | { readonly kind: 'cgroup'; readonly path: string }
  | { readonly kind: 'none' }

/** An endpoint that a commit attaches or changes. */
export interface EndpointEntry {
  readonly id: EndpointId
  readonly generation: Generation
  readonly hook: Hook
  /** False: policy judges packets, but drops none. */
  readonly enforcing: boolean
  /** True: packets that policy would drop pass, and are reported as `audit`. */
  readonly audit: boolean
  /** True: prefixes in the endpoint's own scope (`PrefixBatch.scope`) win over prefixes in the node's scope. Absent: false. */
  readonly scoped?: boolean
  /** The addresses that the endpoint can send from. A cgroup endpoint uses the host's addresses and has no source check. */
  readonly sources: readonly Prefix[]
}

/** One of namegate's own listeners. DNS to a listener needs no rule. An all-zero address means every address of the node. */
export interface ListenerEntry {
  readonly family: Family
  readonly octets: Uint8Array
  readonly port: number
}

/** One commit. Adapters apply the fields in exactly this order, so that no packet ever meets a hole. */
export interface Changes {
  /** New denies stand before new allows. `audit-deny` and `weak-deny` stand last. */
  readonly policyUpserts: readonly PolicyEntry[]
  readonly prefixUpserts: PrefixBatch
  readonly endpointUpserts: readonly EndpointEntry[]
  readonly endpointRemovals: readonly EndpointId[]
  readonly prefixRemovals: PrefixBatch
  /** `audit-deny` and `weak-deny` stand first. Old allows stand before old denies. */
  readonly policyRemovals: readonly PolicyKey[]
}

export type ChangeSection = 'policy' | 'prefix' | 'endpoint'

/** One entry that the datapath refused. All other entries of the commit are in force. */
export interface CommitFailure {
  readonly section: ChangeSection
  readonly action: 'upsert' | 'remove'
  /** The position in the list of this section and action. */
  readonly index: number
  /** The name of the error as in errno(3), for example `ENOSPC`. */
  readonly code: string
}

/** The entries of a commit that the datapath refused. Empty if it took all. */
export type CommitResult = readonly CommitFailure[]

/** All entries were applied. */
export const COMMITTED: CommitResult = []

const NONE: readonly never[] = []

/** Returns the refused entries of one list of a commit. */
export function refusedOf<T>(
  failures: readonly CommitFailure[],
  section: 'policy' | 'endpoint',
  action: 'upsert' | 'remove',
  list: readonly T[],
): readonly T[] {
  if (failures.length === 0) return NONE
  const refused: T[] = []
  for (const failure of failures) {
    const item = list[failure.index]
    const mine = failure.section === section && failure.action === action
    if (mine && item !== undefined) refused.push(item)
  }
  return refused
}

/** Says if an endpoint is enforced at its hook, and why not. */
export type HookState =
  | { readonly kind: 'attached' }
  /** The endpoint has no hook, or the datapath enforces nothing (memory). */
  | { readonly kind: 'unfenced' }
  /** `remade`: the hook exists again, but this generation of the endpoint belongs to an earlier hook. */
  | { readonly kind: 'waiting'; readonly reason: string; readonly remade?: boolean }
  | { readonly kind: 'failed'; readonly reason: string }

/** An endpoint as the datapath has it. */
export interface DatapathEndpoint {
  readonly id: EndpointId
  readonly generation: Generation
  readonly enforcing: boolean
  readonly audit: boolean
  readonly scoped: boolean
  readonly sources: readonly Prefix[]
  /** The kernel's key of the hook, such as `interface:4` or `cgroup:77`. Empty if the endpoint has no hook. */
  readonly hookKey: string
}

/** The state in force, read back from the datapath. */
export interface DatapathDump {
  readonly mode: Mode
  readonly prefixes: PrefixBatch
  readonly policies: readonly PolicyEntry[]
  readonly endpoints: readonly DatapathEndpoint[]
}

/** Why a packet is dropped: policy denies it, its source is not the endpoint's, it is malformed, or policy denies a later fragment. */
export type DropReason = 'policy' | 'source' | 'malformed' | 'fragment'

/** A packet that the datapath dropped, or would have dropped without audit. The adapter reports a sample of these packets. */
export interface DatapathEvent {
  /** `Clock.now()` when the datapath saw the packet. */
  readonly seen: number
  /** Milliseconds from `seen` until the report was read, by a clock that also runs while the machine sleeps. */
  readonly age: number
  readonly verdict: 'deny' | 'audit'
  readonly reason: DropReason
  readonly endpoint: EndpointId
  readonly family: Family
  readonly peer: Uint8Array
  readonly protocol: number
  readonly port: number
  /** The source port of the packet; 0 if its protocol has no ports. */
  readonly localPort: number
  /** True for the first packet of a TCP connection. */
  readonly opening: boolean
  readonly identity: Identity
  readonly rule: RuleId
}
