// Latencies in the form of the load generator: [lowest ns of the bucket, count], ascending. A bucket is 1.6% wide.

export type Buckets = readonly (readonly [lowestNs: number, count: number])[]

/** The microseconds that `share` (0..1) of the values do not exceed, as the low end of their bucket. NaN without values. */
export function percentileUs(buckets: Buckets, share: number): number {
  const total = buckets.reduce((sum, [, count]) => sum + count, 0)
  const wanted = Math.max(1, Math.ceil(total * share))
  let seen = 0
  for (const [lowestNs, count] of buckets) {
    seen += count
    if (seen >= wanted) return lowestNs / 1000
  }
  return NaN
}
