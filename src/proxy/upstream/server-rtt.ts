// How long a server takes to answer: smoothed mean and deviation (RFC 6298 section 2, with its constants), and from
// them how long to wait before another server is asked as well. Every attempt has an id of its own, so a late answer
// tells its true time and no sample is ambiguous. Typed arrays; O(1) a sample.

const MEAN_WEIGHT = 1 / 8
const DEVIATION_WEIGHT = 1 / 4
const DEVIATIONS = 4

export class ServerRtt {
  /** Milliseconds; negative before the first answer. */
  readonly means: Float64Array
  readonly #deviations: Float64Array

  constructor(servers: number) {
    this.means = new Float64Array(servers).fill(-1)
    this.#deviations = new Float64Array(servers)
  }

  add(server: number, ms: number): void {
    const mean = this.means[server]!
    if (mean < 0) {
      this.means[server] = ms
      this.#deviations[server] = ms / 2
      return
    }
    const error = ms - mean
    this.means[server] = mean + MEAN_WEIGHT * error
    this.#deviations[server]! += DEVIATION_WEIGHT * (Math.abs(error) - this.#deviations[server]!)
  }

  /** Milliseconds after which an answer is overdue; undefined before the first answer. */
  timeout(server: number): number | undefined {
    const mean = this.means[server]!
    return mean < 0 ? undefined : mean + DEVIATIONS * this.#deviations[server]!
  }
}
