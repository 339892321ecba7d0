// Times cases side by side. Each round runs all cases of a call in turn, so a ratio of two cases compares neighbours in time: a slow phase of
// the machine slows both.

export interface Case {
  readonly name: string
  /** The number of operations of one `run`. */
  readonly operations: number
  /** Does the work. The result only keeps the compiler from removing it. */
  readonly run: () => number
}

export interface Rounds {
  readonly warmUp: number
  readonly counted: number
}

/** Microseconds per operation of each counted round, and their median. */
export interface Timing {
  readonly perRound: readonly number[]
  readonly median: number
  readonly least: number
  readonly most: number
}

export interface Timings {
  of(name: string): Timing
  /** Median over rounds of `a` : `b`. */
  ratio(a: string, b: string): number
}

/** Runs the cases. Collects garbage before each round, outside of its time. */
export function measure(cases: readonly Case[], rounds: Rounds): Timings {
  const taken = new Map<string, number[]>(cases.map(({ name }) => [name, []]))
  let sink = 0
  for (let round = 0; round < rounds.warmUp + rounds.counted; round++) {
    globalThis.gc?.()
    for (const { name, operations, run } of cases) {
      const began = performance.now()
      sink += run()
      const micros = ((performance.now() - began) * 1_000) / operations
      if (round >= rounds.warmUp) taken.get(name)?.push(micros)
    }
  }
  if (Number.isNaN(sink)) throw new Error('Cannot measure: a case gave no number')
  const of = (name: string) => summarize(taken.get(name) ?? [])
  return {
    of,
    ratio: (a, b) => {
      const other = of(b).perRound
      return median(of(a).perRound.map((value, i) => value / (other[i] ?? NaN)))
    },
  }
}

function summarize(perRound: readonly number[]): Timing {
  return {
    perRound,
    median: median(perRound),
    least: Math.min(...perRound),
    most: Math.max(...perRound),
  }
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const [low = NaN, high = NaN] = [sorted[Math.ceil(sorted.length / 2) - 1], sorted[middle]]
  return (low + high) / 2
}

/** The value that `share` (0..1) of the values do not exceed. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? NaN
}
