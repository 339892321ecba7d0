// The bounds of SEMANTICS 6 as they stand now: use, bound, and how often each was hit. One list, read by
// metrics at a scrape and by `status`, so that both say the same. Costs a few reads; nothing is counted here.

/** One bound. `use` is undefined where only hits are known (bounds per client). */
export interface LimitUse {
  /** Key of the config, e.g. `pairs`, `queries-in-flight`. */
  readonly limit: string
  readonly use: number | undefined
  readonly bound: number
  /** Times that the one too many was refused, evicted or shortened, since the start. */
  readonly hits: number
}

/** From here on a bound is worth a line in `status`. */
export const NEAR_BOUND = 0.8

export function isNearBound({ use, bound }: LimitUse): boolean {
  return use !== undefined && use >= bound * NEAR_BOUND
}
