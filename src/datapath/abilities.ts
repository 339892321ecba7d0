// This file declares what a datapath can do besides commits, with one interface for each ability. Every adapter has all abilities from
// `start` to `stop`. In the memory datapath most abilities do nothing. repair.ts declares repair, adoption.ts has the rules of adoption.

import type { EndpointId } from '../core/ids.ts'
import type { Family } from '../core/ip.ts'
import type { AdoptedFlow, Adoption } from './adoption.ts'
import type { DatapathEvent, Hook, HookState, ListenerEntry, Mode } from './entries.ts'

/** Sets and reads the mode of enforcement. */
export interface ModeSwitch {
  set(mode: Mode): void
  /** The mode in force now; break-glass mode changes it without the daemon. */
  read(): Mode
}

/** Attaches endpoints at their interfaces and cgroups. */
export interface HookControl {
  /**
   * Attaches endpoints whose interface or cgroup has appeared, and marks endpoints whose hook has gone. A generation of an endpoint has one
   * hook. If the hook was made again, an interface lets only DNS pass and a cgroup lets nothing pass, until the endpoint is upserted
   * with another generation. Returns the endpoints whose state changed. Cheap when nothing changed.
   */
  refresh(): readonly EndpointId[]
  /**
   * Calls `onEvents` when an interface appeared, changed or disappeared, so that `refresh` has something to do. Returns false if the kernel
   * sends no such events here. Then call `refresh` often. Otherwise call it now and then, because cgroups send no events.
   */
  watch(onEvents: () => void): boolean
  stateOf(endpoint: EndpointId): HookState
  /** The kernel's present key of a hook (as `DatapathEndpoint.hookKey`); undefined if the hook does not exist. */
  keyOf(hook: Hook): string | undefined
}

/** Fences interfaces: lets an interface that belongs to no endpoint do DNS only. */
export interface FenceControl {
  /**
   * Fences every interface whose name matches a pattern, from the moment the interface is seen. A pattern is a name, or the beginning of a
   * name and `*`. `lo` is never fenced. Replaces the patterns of the call before. Call this before the first `refresh`: fences of an
   * earlier process stay enforced, and the first `refresh` removes those that match no pattern of this process.
   */
  set(patterns: readonly string[]): void
  /** The names of the fenced interfaces, sorted. */
  readonly names: readonly string[]
}

/** Sets the traffic that needs no rule. Each call replaces the list of the call before. */
export interface ExceptionControl {
  /** Sets namegate's own listeners. Call this before endpoints are upserted. */
  setListeners(listeners: readonly ListenerEntry[]): void
  /** Sets namegate's own traffic, for hooks in namegate's network namespace. Adapters whose hooks never see this traffic ignore it. */
  setOwn(own: readonly OwnTraffic[]): void
  /** Sets the interfaces on which rules redirect DNS. Add an interface after its rules are in force. Take it out before its rules go. */
  setIntercepted(interfaces: readonly InterceptedInterface[]): void
  intercepted(): readonly InterceptedInterface[]
}

/**
 * Traffic of namegate itself to one server, over UDP and TCP. Needed if namegate shares a network namespace with the workload that it
 * enforces, as a sidecar does. A packet matches if all five fields match.
 */
export interface OwnTraffic {
  readonly mark: number
  readonly uid: number
  readonly family: Family
  /** The address of the server, 16 octets. */
  readonly octets: Uint8Array
  readonly port: number
}

/**
 * An interface on which rules redirect DNS. The datapath lets port 53 pass to these rules, because the datapath judges a packet before the
 * rules see it. `intercept up|down` and the daemon write the list, each time as a whole.
 */
export interface InterceptedInterface {
  /** The index of the interface in its network namespace. */
  readonly ifindex: number
  /** The families whose rules are in force. An interface without any family is ignored. */
  readonly families: { readonly 4: boolean; readonly 6: boolean }
  /**
   * For a bridge port: the 6 octets of the bridge's own MAC address. Frames for another address stay on the bridge, where no rule redirects
   * DNS. So policy judges port 53 in these frames.
   */
  readonly bridgeMac?: Uint8Array
}

/** Adopts connections that are older than their endpoint's enforcement. */
export interface FlowAdoption {
  /** Lets such connections continue. Returns how many of the listed connections found room in the table. */
  adopt(adoption: Adoption): number
  /** The adopted connections of known endpoints whose time is not over. */
  list(): readonly AdoptedFlow[]
}

/** Reads the datapath's connection table. */
export interface PeerTable {
  scan(): PeerScan
  /** How many connections there are; undefined if only the kernel knows. */
  use(): ConnectionUse | undefined
  /** The cgroup endpoint that sent a query from an address and port of the host, which cgroup endpoints share; undefined if not known. */
  sourceOf(
    protocol: number,
    family: Family,
    octets: Uint8Array,
    port: number,
  ): EndpointId | undefined
}

/** How many connections the table has. */
export interface ConnectionUse {
  /** The connections of all endpoints. */
  readonly all: number
  /** The connections of the endpoint that has the most. */
  readonly most: number
}

/** Walks over the connection table once, in bounded slices. */
export interface PeerScan {
  /** Visits at most about `limit` connections. Returns true when the walk is complete. */
  next(
    limit: number,
    visit: (endpoint: EndpointId, family: Family, peer: Uint8Array) => void,
  ): boolean
}

/** Reports what the datapath did with packets. */
export interface PacketReports {
  drain(limit: number, visit: (event: DatapathEvent) => void): void
  counters(): DatapathCounters
}

/** Counters by name, such as `verdict_allow`, `drop_policy` and `map_writes_ipcache`. They only grow. */
export type DatapathCounters = Readonly<Record<string, number>>
