// The types that `import 'namegate'` gives, and on which a program may rely. open-gate.ts does the work over the daemon.

import type {
  DnsFlowKind,
  EventFlowKind,
  FlowShape,
  FlowVerdict,
  PacketFlowKind,
} from '../admin/flow-shapes.ts'
import type { GateEndpoint, GateStatus } from './admin-types.ts'
import type { GateConfig } from './config-keys.ts'
import type { PolicyDocument } from './policy-document.ts'

/** YAML text of one or more documents, or the documents as objects. */
export type PolicySource = string | PolicyDocument | readonly PolicyDocument[]

/** A workload that policy applies to, with the fields of the endpoints file. */
export interface EndpointSpec {
  readonly name: string
  /** Addresses or prefixes that its packets and queries come from; only a cgroup needs none. */
  readonly addresses?: readonly string[]
  /** By `key` or `source:key`; no source is `external`. */
  readonly labels?: Readonly<Record<string, string>>
  /** Where the kernel sees its packets: the host side of its veth, or with `hook: 'egress'` its own interface. */
  readonly interface?: string
  readonly hook?: 'ingress' | 'egress'
  /** Processes on the host itself: a path inside the cgroup2 mount. */
  readonly cgroup?: string
  /** Report instead of drop. */
  readonly audit?: boolean
}

/** Labels for addresses that no endpoint has, with the fields of the resources file. */
export interface ResourceSpec {
  /** Addresses or prefixes, at least one. */
  readonly addresses: readonly string[]
  /** By `key` or `source:key`; no source is `external`. */
  readonly labels?: Readonly<Record<string, string>>
  /** Names of ports that policies may use, such as `{ web: '8080/TCP' }`. */
  readonly ports?: Readonly<Record<string, string>>
  /** It goes when so much time is over, such as `30s` or `12h`; without it when it is removed. */
  readonly ttl?: string
}

export interface GateOptions {
  /** The keys of the configuration file. */
  readonly config?: GateConfig
  /** Policies by any name of yours. */
  readonly policies?: Readonly<Record<string, PolicySource>>
  readonly endpoints?: readonly EndpointSpec[]
  /** Called with each line of the log; without it there is none. */
  readonly log?: (line: string) => void
}

/** What is to change, all of it at once or nothing. */
export interface GateChange {
  /** Added, or put in the place of what had the name. */
  readonly policies?: Readonly<Record<string, PolicySource>>
  /** Added, or put in the place of the endpoint with the name. */
  readonly endpoints?: readonly EndpointSpec[]
  /** Names; one that is not there is passed over. */
  readonly removePolicies?: readonly string[]
  /** Names; one that is not there is passed over. */
  readonly removeEndpoints?: readonly string[]
}

/** A change that is in force. */
export interface Realized {
  /** Of the datapath, which has confirmed it: the change is part of it. */
  readonly revision: number
  /** Entries that the datapath refuses at present; they are tried again, and until then give less access. */
  readonly refused: number
}

export interface FlowOptions {
  /** Flows of this verdict or kind alone. */
  readonly only?: FlowVerdict | DnsFlowKind | PacketFlowKind | EventFlowKind
  /** Flows of this endpoint alone. */
  readonly endpoint?: string
  /** Begin with those that are still kept, not with the next one. */
  readonly kept?: boolean
  /** How many flows the reader may be behind, 1..65,536 (the default); what is older is dropped. */
  readonly bound?: number
}

export type Flow = FlowShape
export type { GateEndpoint, GateStatus }

/** Flows as they come. Ends after `end` or the gate's stop when what was there has been read; at once by `return` (`break`). */
export interface Flows extends AsyncIterable<Flow> {
  next(): Promise<IteratorResult<Flow, undefined>>
  return(): Promise<IteratorResult<Flow, undefined>>
  [Symbol.asyncIterator](): Flows
  /** No flow after this moment; those before it are still read. */
  end(): void
  /** Flows that went by unseen because the reader was too slow. */
  readonly dropped: number
}

export interface Gate {
  /** Where it takes queries, such as `127.0.0.1:5300` or `[::1]:53`; UDP and TCP both. */
  readonly addresses: readonly string[]
  /** Undefined when the configuration has no `metrics`. */
  readonly metricsPort: number | undefined
  /** Resolves when the change is in force. Rejects with InvalidInputError, and then nothing has changed. */
  change(change: GateChange): Promise<Realized>
  setPolicy(name: string, policy: PolicySource): Promise<Realized>
  removePolicy(name: string): Promise<Realized>
  setEndpoint(endpoint: EndpointSpec): Promise<Realized>
  removeEndpoint(name: string): Promise<Realized>
  /** Adds an external resource, or puts it in the place of the one with the name; a TTL begins anew. Kept over restarts
   *  where the configuration names a `state` folder. Rejects as `change` does. */
  setResource(name: string, resource: ResourceSpec): Promise<Realized>
  /** A name that is not there is passed over; one of a file is refused. */
  removeResource(name: string): Promise<Realized>
  flows(options?: FlowOptions): Flows
  /** The same as `namegate status -o json`. */
  status(): GateStatus
  /** The same as `namegate get endpoints -o json`. */
  endpoints(): readonly GateEndpoint[]
  /** Down, once; what a kernel enforces stays in force. Flows that were not read yet can still be read. */
  stop(): Promise<void>
}
