// The port to whatever enforces. Desired state is written by one commit after another, never two under way at
// once; an adapter makes each real, at once (memory, ebpf) or soon (nftables), and names every entry that its
// kernel refused. L2: no I/O here.
//
// A verdict, for a packet that an endpoint sends (memory and eBPF adapters agree on this, and so does
// the contract suite):
//   1. mode bypass: pass. Neighbour discovery and ARP pass. Malformed: drop, counted.
//   2. source not among the endpoint's: drop, counted.
//   3. to one of namegate's own listeners (`listeners`): pass.
//   4. DNS to one address, of a family that is intercepted on its interface (`setIntercepted`), where it comes in: pass.
//      Steps 3 and 4 hold for packets without IPv4 options, IPv6 extension headers and fragments; all others are judged.
//   5. a reply in a connection that the peer began: pass.
//   6. look up three keys, each by longest match on (protocol, port): the destination's identity, its
//      class, identity 0. Both come from the longest prefix around it, of a scoped endpoint first of all in
//      the endpoint's own scope, else in the node's. Any deny: deny. Else, where any of them lets pass (allow, audit,
//      audit-pass): pass, and report it unless there is an allow and neither audit-deny nor audit-pass.
//   7. a flow that is older than the endpoint's enforcement and was adopted (`adopt`): pass.
//   8. else drop; or, when the mode, the endpoint's audit flag or its absent enforcing flag says so, pass
//      (the first two are reported as `audit`).

import type { EndpointId, Generation, Identity, RuleId } from '../core/ids.ts'
import type { Family, Prefix } from '../core/ip.ts'
import type { AdoptedFlow, Adoption } from './adoption.ts'
import type { FixtureDifference, FixtureScope, RepairedEntry } from './fixture.ts'
import type { InterceptedInterface } from './interception.ts'
import type { OwnTraffic } from './own-traffic.ts'
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

/** One pass over the connection table in bounded slices. */
export interface PeerScan {
  /** Visits at most about `limit` connections; true when the pass is complete. */
  next(
    limit: number,
    visit: (endpoint: EndpointId, family: Family, peer: Uint8Array) => void,
  ): boolean
}

/** Counters by name, e.g. `verdict_allow`, `drop_policy`, `map_writes_ipcache`; they only grow. */
export type DatapathCounters = Readonly<Record<string, number>>

export interface Datapath {
  readonly kind: DatapathKind
  /** Begins to read what is in force, so that `start` finds it read; nobody else writes it from here on. Absent where that
   *  takes no time to speak of. */
  readAhead?(): void
  /** Takes over what is in force already, or starts empty. Throws UnavailableError with the remedy. */
  start(): DatapathDump
  /**
   * Applies one commit. Returns what was refused when it has been applied; undefined when it was taken and is being
   * applied: its end is told by `onCommitted`, and until then nobody calls `commit` again. Everything needed of
   * `changes` has been read when this returns. Equal entries already in force are not errors.
   */
  commit(changes: Changes): CommitResult | undefined
  /** Calls `listener` from the event loop once for each commit that returned undefined, when it has been applied. Never
   *  calls it inside `commit`, nor after `stop`. Adapters that apply at once never call it. One listener, set once. */
  onCommitted(listener: (result: CommitResult) => void): void
  /** Replaces the set of own listeners; call before endpoints are upserted. */
  setListeners(listeners: readonly ListenerEntry[]): void
  /** Lets traffic of namegate itself pass where endpoints' hooks are in its own network namespace; replaces what was said
   *  before. Adapters whose hooks never see it have no such thing. */
  setOwnTraffic?(own: readonly OwnTraffic[]): void
  /** Makes these the interfaces on which DNS is redirected behind the datapath; all others are not. Call it after
   *  the rules that redirect are in, and with fewer before they go. */
  setIntercepted(interfaces: readonly InterceptedInterface[]): void
  intercepted(): readonly InterceptedInterface[]
  setMode(mode: Mode): void
  /** The mode in force now; break glass changes it behind the daemon's back. */
  readMode(): Mode
  /** Attaches endpoints whose interface or cgroup has appeared, marks those that went. One generation has one hook: where it
   *  was made again, DNS alone may pass from an interface and nothing from a cgroup until the endpoint is upserted with
   *  another generation. Cheap when nothing changed. Returns the endpoints whose state changed. */
  refresh(): readonly EndpointId[]
  /** Calls `onNews` when interfaces came, changed or went, so that `refresh` has something to do. False: nobody tells, call
   *  `refresh` often. Even so it is to be called now and then: cgroups send no news. */
  onLinkNews(onNews: () => void): boolean
  /** Interfaces whose names match a pattern (a name, or its beginning and `*`) and that belong to no endpoint may do DNS only,
   *  from the moment they are seen. Never `lo`. Replaces the patterns before; enforced without a process too, so call it before
   *  the first `refresh`, which takes away what an earlier process fenced and this one does not. */
  fence(patterns: readonly string[]): void
  /** Names of the interfaces that are fenced so, sorted. */
  fenced(): readonly string[]
  hookState(endpoint: EndpointId): HookState
  /** What the kernel knows a hook by now (as `DatapathEndpoint.hookKey`); undefined when it is not there. */
  hookKey(hook: Hook): string | undefined
  /** Lets flows pass that are older than the endpoint's enforcement (src/datapath/adoption.ts). Returns how many of
   *  the listed ones were taken: all but those that the table has no room for. */
  adopt(adoption: Adoption): number
  /** The adopted flows of known endpoints whose time is not over. */
  adopted(): readonly AdoptedFlow[]
  /** Which endpoint sent a query from a host address that endpoints share (cgroup endpoints), or undefined. */
  sourceOf(
    protocol: number,
    family: Family,
    octets: Uint8Array,
    port: number,
  ): EndpointId | undefined
  scanPeers(): PeerScan
  /** Connections that are remembered in all, and by the endpoint that has the most. Absent where the kernel alone knows. */
  connectionUse?(): { readonly all: number; readonly most: number }
  drainEvents(limit: number, visit: (event: DatapathEvent) => void): void
  counters(): DatapathCounters
  dump(): DatapathDump
  /** The same with a pause wherever it yields, while commits go on; absent where reading takes no time to speak of, or
   *  cannot be interrupted. */
  dumpInSlices?(): Generator<undefined, DatapathDump>
  /** Writes an endpoint whole, whatever was believed to be there; `held`: sources that really are. Absent where nobody else
   *  writes, or the adapter sees to it by itself. */
  rewrite?(endpoint: EndpointEntry, held: readonly Prefix[]): void
  /** What stands beside the entries and is not as this process made it; `touched`: what `onTouched` was about, and quick. Absent
   *  where nobody else reaches it, or the adapter sees to it by itself. */
  fixtures?(which: FixtureScope): Iterable<FixtureDifference>
  /** Calls `listener` from `refresh` when somebody else changed what stands beside the entries: programs may have been taken off
   *  their hooks. One listener, set once. */
  onTouched?(listener: () => void): void
  /** For an adapter that undoes changes of others by itself: calls `listener` from `refresh` with the
   *  first of `count` entries of each map, once a second at most. One listener, set once. */
  onRepaired?(listener: (first: RepairedEntry, count: number) => void): void
  /** How often such an adapter has compared everything. */
  readonly looks?: number
  /** What the next process would not find: enforcement goes on without it as long as this one does. */
  missingPins?(): readonly string[]
  /** Lets go. With `leaveEnforcing` the kernel goes on enforcing what is in force. */
  stop(options: { readonly leaveEnforcing: boolean }): void
}
