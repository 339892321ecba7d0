// Lists the parts of the daemon that the admin API uses. The daemon fills AdminState once, after all its parts are made. Views and handlers
// read AdminState and hold no state. Its functions are called at each request, so they must be cheap and return the present state.

import type { Clock } from '../core/clock.ts'
import type { StatusShape } from './document/shapes.ts'
import type { Fault } from '../core/errors.ts'
import type { EndpointId } from '../core/ids.ts'
import type { Prefix } from '../core/ip.ts'
import type { AuditDecision } from '../enforcement/audit-control.ts'
import type { CoreState } from '../enforcement/core-state.ts'
import type { FlowRing } from '../flows/record/flow-ring.ts'
import type { ListedResource, ResourceOutcome } from '../enforcement/resource-control.ts'
import type { PolicyControl } from '../enforcement/policy-control.ts'
import type { RestartProgress } from '../restore/restart.ts'
import type { EndpointEntry, Mode, PolicyEntry } from '../datapath/entries.ts'
import type { Endpoint, EndpointRegistry } from '../endpoints/registry.ts'
import type { LabelSelector, Policy } from '../policy/rule.ts'
import type { SocketAddress } from '../core/socket-address.ts'
import type { LimitUse } from '../telemetry/limits.ts'

/** A policy file as its source has it. `PolicyFile` of sources/ has these fields. */
export interface PolicyFileState {
  readonly path: string
  /** Policies of the file that are in force. */
  readonly policies: readonly Policy[]
  readonly state: 'in-force' | 'last-good' | 'rejected'
  readonly faults: readonly Fault[]
}

export interface UpstreamState {
  /** For example `9.9.9.9:53`. */
  readonly address: string
  /** True if the server answered the last question. Undefined while the first answer can still come. */
  readonly answered: boolean | undefined
  /** A server that is down is probed, and receives queries only while all servers are down. */
  readonly state: 'up' | 'failing' | 'down'
  /** True if new queries ask this server first. */
  readonly first: boolean
  /** Smoothed time to the server's answers in milliseconds. Undefined before the first answer. */
  readonly rttMs: number | undefined
  /** How many attempts have ended without an answer since the server's last answer. */
  readonly failures: number
}

export type AuditScope =
  | { readonly kind: 'node' }
  | { readonly kind: 'endpoint'; readonly name: string }
  | { readonly kind: 'selector'; readonly selector: LabelSelector }
  /** All settings that were made at run time. This scope can only remove settings. */
  | { readonly kind: 'all' }

export type AuditResult =
  | { readonly kind: 'ok'; readonly endpoints: readonly string[] }
  | { readonly kind: 'unknown-endpoint' }

/** A query in the name of an endpoint. `OwnQuestion` of proxy/ has these fields. */
export interface AskedQuestion {
  readonly endpoint: EndpointId
  readonly query: Uint8Array
  /** The protocol over which the endpoint would ask: TCP or UDP. */
  readonly protocol: number
  /** The server that the endpoint would ask. Undefined where the endpoint cannot choose a server. */
  readonly server: SocketAddress | undefined
}

/** The servers that endpoints can choose. `AskedServers` of proxy/ has this function. */
export interface ChosenServers {
  /** `pool`: the server is namegate itself. `passed` and `refused`: the server is not trusted. */
  trustIn(address: Prefix, port: number): 'pool' | 'trusted' | 'passed' | 'refused'
}

/** The state of the state folder. */
export interface KeptState {
  readonly use: {
    readonly generation: number
    readonly imageOctets: number
    readonly journalOctets: number
    /** Seconds since the last successful write. */
    readonly age: number
    /** True while a restart would lose something, because the disk refused something or lost something. */
    readonly isFailing: boolean
    /** Text that names another daemon which has the folder. Undefined when no other daemon has it. */
    readonly taken?: string | undefined
    /** Why settings that were made at run time are not on disk. Undefined when they are on disk. */
    readonly settingsFault?: string | undefined
    /** Faults of files that were passed over at the start. A fault stays until its file is written again. */
    readonly damage: readonly string[]
    /** Failed writes by cause. */
    readonly faults: Readonly<Record<string, number>>
  }
}

/** Where a network plugin put a pod. `uid` is empty if the plugin does not know it. */
export interface PodPlacement {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly interface: string
  readonly addresses: readonly string[]
}

/** The Kubernetes cluster of the daemon. */
export interface ClusterView {
  readonly server: string
  readonly version: string
  readonly collections: NonNullable<StatusShape['kubernetes']>['collections']
  /** Undefined if no Events are configured. */
  readonly events: { readonly status: NonNullable<StatusShape['kubernetes']>['events'] } | undefined
  /** Pods of this node that are no endpoints, by reason. */
  readonly leftOut: ReadonlyMap<string, number>
  /** Why this node does not know pods of other nodes, and the namespaces whose pods it knows. An empty reason: it knows them all. */
  readonly unknownPods: { readonly reason: string; readonly except: readonly string[] }
  /** Sentences about what an operator should know. */
  readonly warnings: readonly string[]
  /** Removes the policies that are held. Returns how many. */
  accept(): number
  place(placement: PodPlacement): void
  displace(placement: Pick<PodPlacement, 'namespace' | 'name' | 'uid'>): void
  /** Why a pod is no endpoint. Undefined if it is one. */
  whyNot(placement: Pick<PodPlacement, 'namespace' | 'name' | 'uid'>): string | undefined
}

export interface AdminState {
  readonly clock: Clock
  /** For example `0.1.0`. */
  readonly version: string
  /** Absolute path of the configuration. Undefined for a daemon without a file. */
  readonly configFile?: string | undefined
  /** Time of the start, in wall-clock milliseconds. */
  readonly startedAt: number
  readonly core: CoreState
  readonly policies: PolicyControl
  /** Peers of deny rules that select nothing. */
  readonly emptyDenies: { readonly texts: readonly string[] }
  readonly transition: { readonly realizedRevision: number; readonly pending: boolean }
  readonly flows: FlowRing
  /** Undefined while no flows are kept on disk. */
  readonly keptFlows: { read(): AsyncIterable<string> } | undefined
  /** Undefined while nothing is kept over restarts. */
  readonly kept?: KeptState | undefined
  /** Policy entries of the daemon before, which the restart removes later. */
  inheritedPolicies(): readonly PolicyEntry[]
  /** Progress in restoring what the daemon before knew. Undefined while nothing is kept over restarts. */
  readonly restart?: { readonly progress: RestartProgress } | undefined
  /** Undefined without `kubernetes` in the configuration. */
  readonly cluster?: ClusterView | undefined
  /** Sources that have been silent for longer than `sources.max-age`. */
  readonly sourceAges?:
    | {
        readonly silent: readonly string[]
        /** The age of each kind of files, in milliseconds. */
        ages(): Iterable<readonly [kind: string, milliseconds: number]>
      }
    | undefined
  /** The reaction to silent sources (`sources.then`). */
  readonly sourcesThen?: 'keep' | 'audit' | 'deny'
  /** Repairs of entries that other processes changed. Undefined for a datapath that no other process can change. */
  readonly repair?: { readonly counters: { readonly repaired: number } } | undefined
  /** Answers that wait for the datapath. */
  readonly releases: { readonly count: number }
  readonly endpoints: {
    readonly registry: EndpointRegistry
    /** The endpoints that the datapath must enforce. */
    entries(): Iterable<EndpointEntry>
  }
  resources(): Iterable<ListedResource>
  findResource(name: string): ListedResource | undefined
  /** The ETag of a resource, or of the list of all resources without a name. Undefined if there is no such resource. */
  resourceTag(name?: string): string | undefined
  policyFiles(): Iterable<PolicyFileState>
  /** Warnings about resources of the API that were left out. */
  sourceWarnings?(): readonly string[]
  /** Faults of files other than policies, such as endpoints. */
  faults(): readonly Fault[]
  /** For example `127.0.0.1:53` and `0.0.0.0:10053 (tproxy)`. */
  listeners(): readonly string[]
  /** The state of interception as text. Undefined without transparent listeners. */
  interception(): string | undefined
  /** True while the rules of interception are in force. Undefined without transparent listeners. */
  isIntercepting(): boolean | undefined
  /** True if queries of an endpoint with this interface reach no listener, because each listener intercepts other interfaces. */
  isMissed(interfaceName: string): boolean
  upstreams(): readonly UpstreamState[]
  /** Why the daemon is not ready. Empty when it is ready. */
  notReady(): readonly string[]
  mode(): Mode
  /** The command after which this host forwards the packets of the endpoint. Undefined if it forwards them. */
  forwardingRemedy(endpoint: Endpoint): string | undefined
  /** The audit setting of one endpoint, with its origin (`endpoints file`, `run time`, ...). */
  auditOf(endpoint: Endpoint): AuditDecision
  /** The audit setting of the whole node, with its origin. */
  nodeAudit(): AuditDecision
  limits(): readonly LimitUse[]
  /** The text of `GET /metrics`, in the exposition format. */
  metrics(): Promise<string>
  /** The same of the metrics whose name `wants` takes, without those of the process. */
  someMetrics(wants: (name: string) => boolean): Promise<string>
  /** Sets the mode. `pinned` adopts the mode that is set in the pinned maps. */
  setMode(mode: Mode | 'pinned'): void
  /** Undefined while endpoints cannot choose a server (`upstreams.original-destination`). */
  readonly asked?: ChosenServers | undefined
  /** Asks in the name of an endpoint. Returns false when too many such questions wait (src/proxy/own-questions.ts). */
  ask(question: AskedQuestion, onAnswer: (answer: Uint8Array | undefined) => void): boolean
  /** Makes a setting at run time. `on` undefined removes the setting. */
  setAudit(scope: AuditScope, on: boolean | undefined): AuditResult
  /** Adds or changes an external resource. `body` is the value of the request's JSON. */
  setResource(name: string, body: unknown): ResourceOutcome
  removeResource(name: string): ResourceOutcome
  /** Removes all enforcement and ends the daemon. Undefined where nothing enforces after the end of the daemon. */
  readonly detach: Detach | undefined
}

/** Removes all enforcement and ends the daemon. `withInterception`: also removes the rules of interception. */
export type Detach = (withInterception: boolean) => void
