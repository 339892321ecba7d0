// How an adapter keeps what is in force as it was written when another process changes it. The kernel's entries of eBPF are compared
// and repaired by the daemon (src/reconcile/repair.ts); the nftables adapter repairs its table by itself; memory has no other writer.

import type { Prefix } from '../core/ip.ts'
import type { EndpointEntry } from './entries.ts'

export type Repair = NoRepair | RepairByDaemon | RepairByAdapter

export interface NoRepair {
  readonly kind: 'none'
}

export interface RepairByDaemon {
  readonly kind: 'by-daemon'
  /** Writes an endpoint whole, whatever was believed to be in the kernel. `held`: the sources that the kernel has for it. */
  rewrite(endpoint: EndpointEntry, held: readonly Prefix[]): void
  /** Fixtures that differ from what this process made. `touched` looks only at interfaces with events. */
  fixtures(which: FixtureScope): Iterable<FixtureDifference>
  /** Calls `listener` from `hooks.refresh` when programs may have been taken off their hooks. One listener, set once. */
  onTouched(listener: () => void): void
  /** Pinned maps that the next process would not find. Enforcement goes on without them as long as this process does. */
  missingPins(): readonly string[]
}

export interface RepairByAdapter {
  readonly kind: 'by-adapter'
  /** Calls `listener` from `hooks.refresh` with the first of `count` repaired entries of each map, at most once a second. One
   *  listener, set once. */
  onRepaired(listener: (first: RepairedEntry, count: number) => void): void
  /** How often the adapter has compared everything. */
  walks(): number
}

/** A fixture stands beside the entries that commits write, as long as the datapath does: programs at their hooks, own listeners,
 *  limits. `touched`: only at interfaces with events. */
export type FixtureScope = 'touched' | 'all'

/** A difference that another process made. */
export interface RepairedEntry {
  /** The kernel's map or set; `rules` for all that stands beside them. */
  readonly map: string
  readonly key: string
  /** Null: there should be none. */
  readonly want: string | null
  /** Null: there is none. */
  readonly have: string | null
}

export interface FixtureDifference extends RepairedEntry {
  /** The kernel's map, or `tc`, `cgroup`, `netfilter` for programs. */
  readonly map: FixtureMap
  /** Puts the fixture right. A fixture that the kernel refuses is found again by the next look. */
  readonly mend: () => void
}

export type FixtureMap =
  'tc' | 'cgroup' | 'netfilter' | 'ng_config' | 'ng_endpoints' | 'ng_gate' | 'ng_listeners'
