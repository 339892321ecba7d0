// The JSON that the admin API gives and `namegate get` prints (docs/spec/promises "Outside contracts"): fixed, other
// programs read it. Times are RFC 3339 UTC, addresses RFC 5952, prefixes have a length, names and
// selector texts are lower-case without final dot.

import type { RestartPhase } from '../restore/restart.ts'
import type { FlowKind } from '../flows/record/flow-kinds.ts'
import type { FixtureMap } from '../datapath/repair.ts'

export interface EndpointShape {
  readonly id: number
  readonly name: string
  readonly addresses: readonly string[]
  readonly labels: readonly string[]
  readonly enforcing: boolean
  /** Why it isn't enforcing, and what was said of its audit, the node's and its policies', and where; mostly empty. */
  readonly reason: string
  readonly audit: boolean
  readonly policies: readonly string[]
  readonly policyRevision: number
  readonly realizedRevision: number
  /** Flows that are older than its enforcement and still pass. */
  readonly adoptedFlows: number
}

export interface ResourceShape {
  readonly name: string
  readonly addresses: readonly string[]
  readonly labels: readonly string[]
  readonly origin: 'file' | 'api'
  /** Null when it has no end. */
  readonly expires: string | null
}

export interface ResourceChangeShape {
  readonly name: string
  /** False: it was so before, but perhaps for its end. */
  readonly changed: boolean
  /** Null when it has no end, or is gone. */
  readonly expires: string | null
  /** Of the datapath, which enforces it. */
  readonly revision: number
  /** Entries that the datapath refuses at present. */
  readonly refused: number
}

export interface PolicyShape {
  /** Empty for a rejected file, in which no policy could be read. */
  readonly name: string
  /** Null for a clusterwide policy. */
  readonly namespace: string | null
  readonly kind: string | null
  readonly file: string
  /** How many it selects. */
  readonly endpoints: number
  readonly selectors: readonly string[]
  /** Those of names that matched nothing that was asked and answered since they came into force. */
  readonly unseen: readonly string[]
  /** It takes nothing away (`namegate.io/audit`). */
  readonly audited: boolean
  readonly state: 'in-force' | 'last-good' | 'rejected'
  /** `file:line:column: message`, one a line. */
  readonly error: string | null
}

export interface SelectorShape {
  readonly selector: string
  /** `named`: what endpoints with `default-egress: allow-named` learned, each by itself. */
  readonly kind: 'fqdn' | 'cidr' | 'named' | 'endpoints'
  readonly identities: readonly number[]
  /** How many names known it matches; 0 for a CIDR. */
  readonly names: number
  /** Whether it matched any name that was asked and answered since it came into force; null for what is no name. */
  readonly seen: boolean | null
  readonly policies: readonly string[]
}

export interface NameShape {
  readonly name: string
  readonly endpoint: string
  readonly selectors: readonly string[]
  readonly addresses: readonly {
    readonly address: string
    /** End of the TTL. */
    readonly expires: string
    readonly state: 'live' | 'grace' | 'connected'
  }[]
}

export interface IpcacheShape {
  readonly prefix: string
  readonly identity: number
  readonly labels: readonly string[]
  readonly owners: readonly {
    readonly kind: string
    readonly name: string
    readonly labels: readonly string[]
  }[]
  /** The endpoint that alone sees the prefix so; absent where it holds for the node. */
  readonly endpoint?: string
}

export interface IdentityShape {
  readonly id: number
  readonly labels: readonly string[]
  readonly references: number
  readonly preallocated: boolean
}

/** One entry of the kernel's maps (or of what stands in for them), as it is enforced now. */
export interface DatapathShape {
  readonly map: 'ng_mode' | 'ng_ipcache' | 'ng_policy' | 'ng_endpoints' | 'ng_source' | 'ng_adopted'
  readonly key: string
  readonly value: string
}

export interface DifferenceShape {
  readonly map: DatapathShape['map'] | FixtureMap
  readonly key: string
  /** Null: it should not be there. */
  readonly want: string | null
  /** Null: it is not there. */
  readonly have: string | null
}

export interface VerifyShape {
  readonly differences: readonly DifferenceShape[]
}

export interface StatusShape {
  readonly health: 'ok' | 'degraded'
  readonly ready: boolean
  readonly notReady: readonly string[]
  readonly version: string
  readonly started: string
  readonly pid: number
  readonly mode: string
  readonly datapath: {
    readonly kind: string
    /** The last one in force, and the one that will have all changes of now. */
    readonly revision: number
    readonly desiredRevision: number
    /** Entries that it refuses at present. */
    readonly refused: number
    /** Whether a commit has taken longer than a second. */
    readonly stalled: boolean
    /** Answers that wait for it. */
    readonly held: number
    /** Entries that somebody else changed or deleted, and that were put right. */
    readonly repaired: number
  }
  readonly policyRevision: number
  readonly realizedRevision: number
  readonly endpoints: { readonly known: number; readonly enforcing: number }
  readonly policies: number
  /** `127.0.0.1:53`, and of those with another mode than explicit `0.0.0.0:10053 (tproxy)`. */
  readonly listeners: readonly string[]
  /** Null when no listener has a transparent mode. */
  readonly interception: string | null
  readonly upstreams: readonly {
    readonly address: string
    /** Null before it was asked. */
    readonly answered: boolean | null
    readonly state: 'up' | 'failing' | 'down'
    /** Whether new queries ask it first. */
    readonly first: boolean
    /** Null before its first answer. */
    readonly rttMs: number | null
    readonly failures: number
  }[]
  /** What is kept over restarts; null where nothing is. Octets, and seconds since the disk took something. */
  readonly kept: {
    readonly generation: number
    readonly image: number
    readonly journal: number
    readonly age: number
    readonly faults: number
  } | null
  /** How far the daemon has come with what the one before knew and enforced; null where nothing is kept. */
  readonly restart: {
    readonly phase: RestartPhase
    readonly restored: number
    readonly left: number
    readonly claimed: number
    readonly kept: number
  } | null
  /** Times that the bound on identities made one with fewer fqdn labels stand in. */
  readonly identityFallbacks: number
  /** Bounds that are used by 80 % or more, and those that were hit since the start. */
  readonly limits: readonly {
    readonly limit: string
    /** Null where only hits are known. */
    readonly use: number | null
    readonly bound: number
    readonly hits: number
  }[]
  readonly faults: readonly {
    readonly file: string
    readonly line: number
    readonly column: number
    readonly message: string
  }[]
  readonly warnings: readonly string[]
}

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
