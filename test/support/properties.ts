// How often properties run: NAMEGATE_RUNS times the number in each test. NAMEGATE_SEED and NAMEGATE_PATH replay one failure.
// `npm run property` sets all three, and replaces fast-check by this module in the tests (scripts/test-modules.mjs).

import * as fc from '../../node_modules/fast-check/lib/fast-check.js'
import type {
  IAsyncProperty,
  IProperty,
  IRawProperty,
  Parameters,
} from '../../node_modules/fast-check/lib/fast-check.js'

export * from '../../node_modules/fast-check/lib/fast-check.js'
// oxlint-disable-next-line import/no-default-export -- as fast-check, which this stands for
export default { ...fc, assert }

const RUNS_USUAL = 100
const FACTOR = Number(process.env['NAMEGATE_RUNS'] ?? 1)
const SEED = process.env['NAMEGATE_SEED']
const PATH = process.env['NAMEGATE_PATH']

/** The number of runs of a random test that runs `usual` times in the suite. */
export function runsOf(usual: number): number {
  return Math.ceil(usual * FACTOR)
}

export function assert<T>(property: IAsyncProperty<T>, given?: Parameters<T>): Promise<void>
export function assert<T>(property: IProperty<T>, given?: Parameters<T>): void
export function assert<T>(
  property: IRawProperty<T>,
  given: Parameters<T> = {},
): Promise<void> | void {
  const numRuns = runsOf(given.numRuns ?? RUNS_USUAL)
  const seed = SEED === undefined ? {} : { seed: Number(SEED) }
  const path = PATH === undefined ? {} : { path: PATH }
  const began = performance.now()
  const report = (): void => {
    if (FACTOR === 1) return
    console.error(`${numRuns} runs in ${((performance.now() - began) / 1000).toFixed(1)} s`)
  }
  const ran = fc.assert(property, { ...given, numRuns, ...seed, ...path })
  return ran instanceof Promise ? ran.then(report) : report()
}
