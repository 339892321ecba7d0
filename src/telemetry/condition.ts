// Decides when to report that a condition fails, and when to report that the condition is well again. The owner calls `look` from time to
// time. Each failure and each recovery is reported once. Two reports of failures are at least a minute apart: a failure that begins sooner
// is reported at the end of the minute, if the condition still fails.

const REPORT_MS = 60_000

export class Condition {
  #since = 0
  #reportedAt = -Infinity
  #isBad = false
  #isReported = false

  /** Returns the report that is due at `now` (milliseconds), or undefined when no report is due. */
  look(now: number, isBad: boolean): 'fails' | 'is well' | undefined {
    if (isBad && !this.#isBad) this.#since = now
    this.#isBad = isBad
    if (isBad === this.#isReported) return undefined
    if (isBad && now - this.#reportedAt < REPORT_MS) return undefined
    this.#isReported = isBad
    if (isBad) this.#reportedAt = now
    return isBad ? 'fails' : 'is well'
  }

  /** How long the present failure has lasted at `now`, in milliseconds. After a recovery: the time since the last failure began. */
  lasted(now: number): number {
    return Math.round(now - this.#since)
  }
}
