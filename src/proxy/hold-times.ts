// For how long answers were held, counted by powers of ten: enough to see whether the datapath keeps up.

/** Milliseconds that an answer was held at most, for each count; the last count has no end. */
export const HOLD_STEPS_MS: readonly number[] = [1, 10, 100, 1000]

export class HoldTimes {
  readonly counts = new Float64Array(HOLD_STEPS_MS.length + 1)
  #totalMs = 0

  /** All holds together, in milliseconds. */
  get totalMs(): number {
    return this.#totalMs
  }

  add(milliseconds: number): void {
    let step = 0
    while (step < HOLD_STEPS_MS.length && milliseconds > (HOLD_STEPS_MS[step] ?? 0)) step++
    this.counts[step]!++
    this.#totalMs += milliseconds
  }
}
