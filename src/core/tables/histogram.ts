// Histogram counts values in fixed buckets. Adding a value allocates nothing: it compares the value with the bounds, smallest first, and
// most values are small.

/** Upper bounds for times of DNS, in milliseconds. A bucket has the values up to its bound and above the bound before. */
export const TIME_BOUNDS_MS: readonly number[] = [
  0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000,
]

export class Histogram {
  /** Upper bounds of the buckets, in ascending order. Values above the last bound have one more bucket. */
  readonly bounds: readonly number[]
  /** For each bucket, the number of values in this bucket alone. One longer than `bounds`. */
  readonly counts: Float64Array
  readonly #bounds: Float64Array
  #sum = 0

  constructor(bounds: readonly number[] = TIME_BOUNDS_MS) {
    this.bounds = bounds
    this.#bounds = Float64Array.from(bounds)
    this.counts = new Float64Array(bounds.length + 1)
  }

  /** The sum of all values. */
  get sum(): number {
    return this.#sum
  }

  /** Adds one value. A value that is not a number of 0 or more counts as 0. */
  add(value: number): void {
    const counted = value > 0 ? value : 0
    const bounds = this.#bounds
    let bucket = 0
    while (bucket < bounds.length && counted > bounds[bucket]!) bucket++
    this.counts[bucket]!++
    this.#sum += counted
  }
}
