// What the admin API needs of the daemon, by name. The daemon fills it once, when everything is put together; views and
// handlers read it and hold no state. Functions are called at each request, so they must be cheap and return the present state.

import type { Clock } from '../core/clock.ts'
import type { Fault } from '../core/errors.ts'
import type { EndpointId } from '../core/ids.ts'
import type { AuditDecision } from '../enforcement/audit-control.ts'
import type { CoreState } from '../enforcement/core-state.ts'
import type { FlowRing } from '../flows/record/flow-ring.ts'
import type { ListedResource, ResourceOutcome } from '../enforcement/resource-control.ts'
import type { PolicyControl } from '../enforcement/policy-control.ts'
import type { RestartProgress } from '../restore/restart.ts'
import type { EndpointEntry, Mode } from '../datapath/entries.ts'
import type { Endpoint, EndpointRegistry } from '../endpoints/registry.ts'
import type { LabelSelector, Policy } from '../policy/rule.ts'
import type { SocketAddress } from '../core/socket-address.ts'
import type { LimitUse } from '../telemetry/limits.ts'
import type { KeptStateSource } from '../telemetry/metrics/sources.ts'

/** A policy file as its source has it; `PolicyFile` of sources/ fits. */
export interface PolicyFileState {
  readonly path: string
  /** Policies of the file that are in force. */
  readonly policies: readonly Policy[]
  readonly state: 'in-force' | 'last-good' | 'rejected'
  readonly faults: readonly Fault[]
}

export interface UpstreamState {
  /** `9.9.9.9:53` */
  readonly address: string
  /** Whether it answered last; undefined before it was asked anything. */
  readonly answered: boolean | undefined
  /** Down servers are asked only when all are down, and probed. */
  readonly state: 'up' | 'failing' | 'down'
  /** Whether new queries ask it first. */
  readonly first: boolean
  /** Smoothed milliseconds to its answers; undefined before the first. */
  readonly rttMs: number | undefined
  /** Attempts since its last answer that ended without one. */
  readonly failures: number
}

export type AuditScope =
  | { readonly kind: 'node' }
  | { readonly kind: 'endpoint'; readonly name: string }
  | { readonly kind: 'selector'; readonly selector: LabelSelector }
  /** Everything that was said at run time; only to take it back. */
  | { readonly kind: 'all' }

export type AuditResult =
  | { readonly kind: 'ok'; readonly endpoints: readonly string[] }
  | { readonly kind: 'unknown-endpoint' }

/** A query in the name of an endpoint; `OwnQuestion` of proxy/ fits. */
export interface AskedQuestion {
  readonly endpoint: EndpointId
  readonly query: Uint8Array
  /** That it would come over, TCP or UDP. */
  readonly protocol: number
  /** That the endpoint asks, where it may choose. */
  readonly server: SocketAddress | undefined
}

export interface AdminState {
  readonly clock: Clock
  /** `0.1.0` */
  readonly version: string
  /** Wall-clock milliseconds. */
  readonly startedAt: number
  readonly core: CoreState
  readonly policies: PolicyControl
  /** Peers of deny rules that select nothing. */
  readonly emptyDenies: { readonly texts: readonly string[] }
  readonly transition: { readonly realizedRevision: number; readonly pending: boolean }
  readonly flows: FlowRing
  /** Undefined where none are kept outside of the process. */
  readonly keptFlows: { read(): AsyncIterable<string> } | undefined
  /** What is kept over restarts; undefined where nothing is. */
  readonly kept?: KeptStateSource | undefined
  /** The way back to what the daemon before knew; undefined where nothing is kept. */
  readonly restart?: { readonly progress: RestartProgress } | undefined
  /** When sources were heard, and which are silent for too long. */
  readonly sourceAges?: { readonly silent: readonly string[] } | undefined
  /** What happens while they are (`sources.then`). */
  readonly sourcesThen?: 'keep' | 'audit' | 'deny'
  /** Who puts right what others did to the datapath's entries; undefined where the adapter does. */
  readonly repair?: { readonly counters: { readonly repaired: number } } | undefined
  /** Answers that wait for the datapath. */
  readonly releases: { readonly count: number }
  readonly endpoints: {
    readonly registry: EndpointRegistry
    /** What the datapath is to fence. */
    entries(): Iterable<EndpointEntry>
  }
  resources(): Iterable<ListedResource>
  policyFiles(): Iterable<PolicyFileState>
  /** What is as files say, and may not be meant: they were emptied or are gone. */
  sourceWarnings?(): readonly string[]
  /** Faults of files other than policies, such as endpoints. */
  faults(): readonly Fault[]
  /** `127.0.0.1:53`, `0.0.0.0:10053 (tproxy)` */
  listeners(): readonly string[]
  /** What stands in the way of queries to other servers, or why nothing does; undefined without transparent listeners. */
  interception(): string | undefined
  upstreams(): readonly UpstreamState[]
  /** What keeps the daemon from being ready; empty when it is. */
  notReady(): readonly string[]
  mode(): Mode
  /** Whether an endpoint itself is audited, and where that was said (`endpoints file`, `run time`, ...). */
  auditOf(endpoint: Endpoint): AuditDecision
  /** Whether the whole node is, likewise. */
  nodeAudit(): AuditDecision
  limits(): readonly LimitUse[]
  /** The text of `GET /metrics`, in the exposition format. */
  metrics(): Promise<string>
  /** `pinned`: takes over what the datapath has by now. */
  setMode(mode: Mode | 'pinned'): void
  /** Asks in the name of an endpoint; false when too many such questions wait (src/proxy/own-questions.ts). */
  ask(question: AskedQuestion, onAnswer: (answer: Uint8Array | undefined) => void): boolean
  /** Undefined: what was said at run time is taken back. */
  setAudit(scope: AuditScope, on: boolean | undefined): AuditResult
  /** Adds an external resource or changes it, by the body of the request. */
  setResource(name: string, body: unknown): ResourceOutcome
  removeResource(name: string): ResourceOutcome
  /** Takes all enforcement away and ends; undefined where the datapath has nothing to take away. */
  readonly detach: (() => void) | undefined
}
