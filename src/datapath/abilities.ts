// What a datapath does beside commits, one interface for each ability. Every adapter has every ability from `start` to `stop`; without
// a kernel (memory) most of them do nothing. Repair has a file of its own (repair.ts), and so have the rules of adoption (adoption.ts).

import type { EndpointId } from '../core/ids.ts'
import type { Family } from '../core/ip.ts'
import type { AdoptedFlow, Adoption } from './adoption.ts'
import type { DatapathEvent, Hook, HookState, ListenerEntry, Mode } from './entries.ts'
import type { InterceptedInterface } from './interception.ts'

export interface ModeSwitch {
  set(mode: Mode): void
  /** The mode in force now; break-glass mode changes it without the daemon. */
  read(): Mode
}

/** Endpoints at their interfaces and cgroups. */
export interface HookControl {
  /**
   * Attaches endpoints whose interface or cgroup has appeared, and marks those whose hook went. One generation has one hook: where
   * the hook was made again, DNS alone may pass from an interface and nothing from a cgroup until the endpoint is upserted with
   * another generation. Cheap when nothing changed. Returns the endpoints whose state changed.
   */
  refresh(): readonly EndpointId[]
  /** Calls `onNews` when interfaces came, changed or went, so that `refresh` has something to do. False: the kernel sends no such
   *  events here, so call `refresh` often. Call `refresh` now and then in any case, because cgroups send no events. */
  watch(onNews: () => void): boolean
  stateOf(endpoint: EndpointId): HookState
  /** The kernel's present key of a hook (as `DatapathEndpoint.hookKey`); undefined when the hook is not there. */
  keyOf(hook: Hook): string | undefined
}

/** Interfaces that belong to no endpoint and may do DNS only. */
export interface FenceControl {
  /** Fences interfaces whose names match a pattern (a name, or its beginning and `*`) from the moment they are seen. Never `lo`.
   *  Replaces the patterns before. Fences are enforced without a process too, so call this before the first `refresh`, which removes
   *  the fences of an earlier process that this one does not have. */
  set(patterns: readonly string[]): void
  /** Names of the interfaces that are fenced, sorted. */
  readonly names: readonly string[]
}

/** Traffic that needs no rule. Each call replaces what the call before said. */
export interface ExceptionControl {
  /** Own listeners; call this before endpoints are upserted. */
  setListeners(listeners: readonly ListenerEntry[]): void
  /** Traffic of namegate itself where endpoints' hooks are in its own network namespace. Adapters whose hooks never see that traffic
   *  ignore the call. */
  setOwn(own: readonly OwnTraffic[]): void
  /** The interfaces on which DNS is redirected behind the datapath. Call this after the rules that redirect are in, and with fewer
   *  interfaces before the rules go. */
  setIntercepted(interfaces: readonly InterceptedInterface[]): void
  intercepted(): readonly InterceptedInterface[]
}

/** Traffic of namegate itself to one server, UDP and TCP, where namegate shares a network namespace with the workload that it fences, as a
 *  sidecar does. All five fields must match. */
export interface OwnTraffic {
  readonly mark: number
  readonly uid: number
  readonly family: Family
  /** Address of the server, 16 octets. */
  readonly octets: Uint8Array
  readonly port: number
}

/** Flows that are older than their endpoint's enforcement. */
export interface FlowAdoption {
  /** Lets such flows pass. Returns how many of the listed ones found room in the table. */
  adopt(adoption: Adoption): number
  /** The adopted flows of known endpoints whose time is not over. */
  list(): readonly AdoptedFlow[]
}

/** The datapath's connection table. */
export interface PeerTable {
  scan(): PeerScan
  /** Connections in all, and of the endpoint that has the most; undefined where the kernel alone knows. */
  use(): ConnectionUse | undefined
  /** The endpoint that sent a query from a host address that endpoints share (cgroup endpoints), or undefined. */
  sourceOf(
    protocol: number,
    family: Family,
    octets: Uint8Array,
    port: number,
  ): EndpointId | undefined
}

export interface ConnectionUse {
  readonly all: number
  readonly most: number
}

/** One pass over the connection table in bounded slices. */
export interface PeerScan {
  /** Visits at most about `limit` connections; true when the pass is complete. */
  next(
    limit: number,
    visit: (endpoint: EndpointId, family: Family, peer: Uint8Array) => void,
  ): boolean
}

/** What the datapath reports of packets. */
export interface PacketReports {
  drain(limit: number, visit: (event: DatapathEvent) => void): void
  counters(): DatapathCounters
}

/** Counters by name, e.g. `verdict_allow`, `drop_policy`, `map_writes_ipcache`; they only grow. */
export type DatapathCounters = Readonly<Record<string, number>>
