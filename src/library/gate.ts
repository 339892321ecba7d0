// Defines the public types of `import 'namegate'`. open-gate.ts implements them with the daemon.

import type { Endpoint, Flow, Status } from '../client/api-types.ts'
import type { GateConfig } from './config-keys.ts'
import type { PolicyDocument } from './policy-document.ts'

/** A policy: YAML text of one or more documents, or the documents as objects. */
export type PolicySource = string | PolicyDocument | readonly PolicyDocument[]

/** A workload that policy applies to, with the fields of the endpoints file. */
export interface EndpointSpec {
  readonly name: string
  /** Addresses or prefixes from which the workload sends packets and queries. With `cgroup` or `hook: 'egress'` there can be none. */
  readonly addresses?: readonly string[]
  /** Labels by `key` or `source:key`. Without source, the source is `external`. */
  readonly labels?: Readonly<Record<string, string>>
  /** The interface with the workload's packets: the host side of its veth or, with `hook: 'egress'`, the workload's own interface. */
  readonly interface?: string
  readonly hook?: 'ingress' | 'egress'
  /** For processes on the host itself: the path of their cgroup inside the cgroup2 mount. */
  readonly cgroup?: string
  /** True: report what policy denies, and allow it. */
  readonly audit?: boolean
}

/** Labels for addresses that no endpoint has, with the fields of the resources file. */
export interface ResourceSpec {
  /** Addresses or prefixes. At least one. */
  readonly addresses: readonly string[]
  /** Labels by `key` or `source:key`. Without source, the source is `external`. */
  readonly labels?: Readonly<Record<string, string>>
  /** Names of ports for policies, such as `{ web: '8080/TCP' }`. */
  readonly ports?: Readonly<Record<string, string>>
  /** How long the resource exists, such as `30s` or `12h`. Without it, the resource stays until it is removed. */
  readonly ttl?: string
}

export interface GateOptions {
  /** The configuration, with the keys of the configuration file. */
  readonly config?: GateConfig
  /** The policies, by names that you choose. */
  readonly policies?: Readonly<Record<string, PolicySource>>
  readonly endpoints?: readonly EndpointSpec[]
  /** Receives each line of the log. Without this function, nothing is logged. */
  readonly log?: (line: string) => void
}

/** A change, which takes effect as a whole or not at all. */
export interface GateChange {
  /** Policies to add. A policy replaces the policy with the same name. */
  readonly policies?: Readonly<Record<string, PolicySource>>
  /** Endpoints to add. An endpoint replaces the endpoint with the same name. */
  readonly endpoints?: readonly EndpointSpec[]
  /** Names of policies to remove. Unknown names are ignored. */
  readonly removePolicies?: readonly string[]
  /** Names of endpoints to remove. Unknown names are ignored. */
  readonly removeEndpoints?: readonly string[]
}

/** A change that is in force. */
export interface Realized {
  /** The revision of the datapath that contains the change. The kernel has confirmed it. */
  readonly revision: number
  /** How many entries the datapath refuses at present. The datapath tries them again. Until then there is less access. */
  readonly refused: number
}

export interface FlowOptions {
  /** Only flows with this verdict or of this kind. */
  readonly only?: Flow['verdict'] | Flow['kind']
  /** Only flows of this endpoint. */
  readonly endpoint?: string
  /** True: begin with the oldest flow in memory. False or absent: begin with the next flow. */
  readonly kept?: boolean
  /** How many flows the reader can be behind, 1..65,536 (the default). Older flows are dropped for this reader. */
  readonly bound?: number
}

export type { Endpoint as GateEndpoint, Flow, Status as GateStatus }

/**
 * Flows in the order in which they happen. Flows from before `end` or the gate's stop can still be read. `return` (`break`) ends at once.
 */
export interface Flows extends AsyncIterable<Flow> {
  next(): Promise<IteratorResult<Flow, undefined>>
  return(): Promise<IteratorResult<Flow, undefined>>
  [Symbol.asyncIterator](): Flows
  /** Ends the flows. Flows from before this call can still be read. */
  end(): void
  /** How many flows were dropped because the reader was too slow. */
  readonly dropped: number
}

export interface Gate {
  /** The addresses that take queries over UDP and TCP, such as `127.0.0.1:5300` or `[::1]:53`. */
  readonly addresses: readonly string[]
  /** The port of the metrics. Undefined when the configuration has no `metrics`. */
  readonly metricsPort: number | undefined
  /** Makes a change, and resolves when the change is in force. After a rejection with InvalidInputError, nothing has changed. */
  change(change: GateChange): Promise<Realized>
  setPolicy(name: string, policy: PolicySource): Promise<Realized>
  removePolicy(name: string): Promise<Realized>
  setEndpoint(endpoint: EndpointSpec): Promise<Realized>
  removeEndpoint(name: string): Promise<Realized>
  /**
   * Adds an external resource, or replaces the resource with the same name; then its TTL begins again. The resource is kept over restarts
   * if the configuration names a `state` folder. Rejects as `change` does.
   */
  setResource(name: string, resource: ResourceSpec): Promise<Realized>
  /** Removes an external resource. An unknown name is ignored. Rejects with InvalidInputError for a resource of a file. */
  removeResource(name: string): Promise<Realized>
  flows(options?: FlowOptions): Flows
  /** Returns what `namegate status -o json` prints. */
  status(): Status
  /** Returns what `namegate get endpoints -o json` prints. */
  endpoints(): readonly Endpoint[]
  /** Stops the gate. The kernel continues to enforce. Flows from before this call can still be read. */
  stop(): Promise<void>
}
