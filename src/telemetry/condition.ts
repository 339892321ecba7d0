// A condition that fails and recovers, checked now and then. It yields one log line when it fails and one when it is well again, at
// most one of each a minute. A failure that comes sooner after the last one is reported when the minute is over, if it lasts.

const TOLD_MS = 60_000

export class Condition {
  #since = 0
  #told = -Infinity
  #isBad = false
  #isTold = false

  /** What is to be told at `now`, in milliseconds; undefined: nothing. */
  look(now: number, isBad: boolean): 'fails' | 'is well' | undefined {
    if (isBad && !this.#isBad) this.#since = now
    this.#isBad = isBad
    if (isBad === this.#isTold) return undefined
    if (isBad && now - this.#told < TOLD_MS) return undefined
    this.#isTold = isBad
    if (isBad) this.#told = now
    return isBad ? 'fails' : 'is well'
  }

  /** How long it has failed, or did when it failed last. */
  lasted(now: number): number {
    return Math.round(now - this.#since)
  }
}
