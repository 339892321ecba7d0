// The cost of the packet path itself: queries in, queries out, answers in, learned, answers out, like in a daemon, but
// without a kernel behind the addon's functions and with the datapath in memory. `steady`: 20,000 known names; `new`: every name and address
// is new. Per query, of the median turn. The machine must be quiet. Real-time priority (`chrt -f`) does not help: the compiler of tsx
// inherits it and takes a processor from all other processes.

import { runBench, type Figure } from './support/bench.ts'
import { STAGES } from './support/loop-addon.ts'
import { median, quantile } from './support/measure.ts'
import { mkPath, type Path } from './support/path.ts'

const BATCH = 32
const STEADY_NAMES = 20_000
/** Turns until every name is known and everything is compiled. */
const WARM_TURNS = 12_000
const TURNS = 12_000
const NEW_WARM_TURNS = 3000
const NEW_TURNS = 6000

function run(): readonly Figure[] {
  const path = mkPath()
  let asked = 0
  // An order that differs from that of their numbers.
  const steady = () => (asked++ * 7919) % STEADY_NAMES
  let next = STEADY_NAMES
  const fresh = () => next++
  measureTurns(path, steady, WARM_TURNS)
  const known = figuresOf('steady', measureTurns(path, steady, TURNS))
  measureTurns(path, fresh, NEW_WARM_TURNS)
  const unknown = figuresOf('new', measureTurns(path, fresh, NEW_TURNS))
  const { queries } = path.admission.counters
  const { exact } = path.settlement.counters
  if (queries !== exact) throw new Error(`Cannot tell: ${queries} queries, ${exact} taught exactly`)
  path.stop()
  return [...known, ...unknown]
}

/** Microseconds per query of each turn, by stage. */
function measureTurns(
  { addon }: Path,
  number: () => number,
  turns: number,
): readonly (readonly number[])[] {
  const spans: number[][] = STAGES.map(() => [])
  const numbers = new Array<number>(BATCH).fill(0)
  for (let turn = 0; turn < turns; turn++) {
    for (let i = 0; i < BATCH; i++) numbers[i] = number()
    addon.run(numbers)
    spans.forEach((values, stage) => values.push((addon.spans[stage]! * 1000) / BATCH))
  }
  return spans
}

function figuresOf(load: string, spans: readonly (readonly number[])[]): readonly Figure[] {
  const turns = spans[0]?.length ?? 0
  const whole = Array.from({ length: turns }, (_, turn) =>
    spans.reduce((sum, values) => sum + (values[turn] ?? 0), 0),
  )
  const stages = spans.map((values, stage) => figure(`${load}: ${STAGES[stage]}`, values))
  return [...stages, figure(`${load}: all`, whole)]
}

function figure(name: string, values: readonly number[]): Figure {
  const spread = [quantile(values, 0.1), quantile(values, 0.9)] as const
  return { name, value: median(values), unit: 'us', spread }
}

await runBench({ name: 'path', about: 'microseconds per query on the packet path', run })
