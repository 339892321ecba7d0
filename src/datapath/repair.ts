// This file declares how an adapter undoes changes that another process made to the state in force. For eBPF, the daemon compares the
// kernel's entries and repairs them (src/reconcile/repair.ts). The nftables adapter repairs its table by itself. The memory datapath has no
// other writer.

import type { Prefix } from '../core/ip.ts'
import type { EndpointEntry } from './entries.ts'

/** The component that repairs the state in force: none, the daemon, or the adapter itself. */
export type Repair = NoRepair | RepairByDaemon | RepairByAdapter

export interface NoRepair {
  readonly kind: 'none'
}

export interface RepairByDaemon {
  readonly kind: 'by-daemon'
  /** Writes a whole endpoint, whatever the adapter believes to be in the kernel. `held`: the sources of the endpoint in the kernel. */
  rewrite(endpoint: EndpointEntry, held: readonly Prefix[]): void
  /** Yields the fixtures that differ from what this process made. */
  fixtures(which: FixtureScope): Iterable<FixtureDifference>
  /** Calls `listener` from `hooks.refresh` when programs can have been taken off their hooks. Takes one listener, set once. */
  onTouched(listener: () => void): void
  /** Returns pinned maps that the next process would not find. Without the pins, enforcement ends with this process. */
  missingPins(): readonly string[]
}

export interface RepairByAdapter {
  readonly kind: 'by-adapter'
  /** Calls `listener` at most once a second, from `hooks.refresh`, with the first of `count` repaired entries of each map. Set once. */
  onRepaired(listener: (first: RepairedEntry, count: number) => void): void
  /** How many times the adapter has compared everything. */
  walks(): number
}

/**
 * Which fixtures to compare. A fixture is something that exists beside the entries of commits, as long as the datapath exists: programs at
 * their hooks, own listeners, limits. `touched`: only fixtures at interfaces that had events.
 */
export type FixtureScope = 'touched' | 'all'

/** A difference that another process made. */
export interface RepairedEntry {
  /** The name of the kernel's map or set; `rules` for anything else. */
  readonly map: string
  readonly key: string
  /** The wanted value. Null: the entry must not exist. */
  readonly want: string | null
  /** The value that was found. Null: the entry did not exist. */
  readonly have: string | null
}

/** A fixture that differs from what this process made. */
export interface FixtureDifference extends RepairedEntry {
  /** The kernel's map, or `tc`, `cgroup`, `netfilter` for programs. */
  readonly map: FixtureMap
  /** Restores the fixture. If the kernel refuses, the next comparison finds the fixture again. */
  readonly mend: () => void
}

export type FixtureMap =
  | 'tc'
  | 'cgroup'
  | 'netfilter'
  | 'ng_config'
  | 'ng_endpoints'
  | 'ng_gate'
  | 'ng_listeners'
