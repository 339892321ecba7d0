// What enforces beside the entries that commits write, and stands as long as the datapath does: programs at their hooks,
// own listeners, limits. Somebody else may take it away; this is what is found then.

/** Programs at interfaces of which the kernel had news, or everything. */
export type FixtureScope = 'touched' | 'all'

/** What somebody else changed. */
export interface RepairedEntry {
  /** The kernel's map or set; `rules` for all that stands beside them. */
  readonly map: string
  readonly key: string
  /** Null: it should not be there. */
  readonly want: string | null
  /** Null: it is not there. */
  readonly have: string | null
}

export interface FixtureDifference extends RepairedEntry {
  /** The kernel's map, or `tc`, `cgroup`, `netfilter` for programs. */
  readonly map: FixtureMap
  /** Puts it right. What the kernel refuses is found again with the next look. */
  readonly mend: () => void
}

export type FixtureMap =
  'tc' | 'cgroup' | 'netfilter' | 'ng_config' | 'ng_endpoints' | 'ng_gate' | 'ng_listeners'
