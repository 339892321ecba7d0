// For how long answers were held, counted by powers of ten: enough to see whether the datapath keeps up.

/** Milliseconds that an answer was held at most, for each count; the last count has no end. */
const STEPS_MS: readonly number[] = [1, 10, 100, 1000]

export class HoldTimes {
  readonly #counts = new Float64Array(STEPS_MS.length + 1)
  #totalMs = 0

  /** All holds together, in milliseconds. */
  get totalMs(): number {
    return this.#totalMs
  }

  add(milliseconds: number): void {
    let step = 0
    while (step < STEPS_MS.length && milliseconds > (STEPS_MS[step] ?? 0)) step++
    this.#counts[step]!++
    this.#totalMs += milliseconds
  }

  /** `1ms` to how many were held that long at most and longer than the step before; the last is `longer`. */
  *readings(): Iterable<readonly [step: string, count: number]> {
    for (const [i, count] of this.#counts.entries()) {
      const step = STEPS_MS[i]
      yield [step === undefined ? 'longer' : `${step}ms`, count]
    }
  }
}
