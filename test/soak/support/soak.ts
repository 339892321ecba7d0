// The frame of a soak. A file test/soak/NAME.soak.ts ends with `await runSoak({...})` and is a program. Answers arrive at an even rate for some
// minutes, on the real clock, beside all periodic work of the daemon. Each second, the soak records their cost. Prints a table and writes a
// picture. Exits with 1 if a figure is over its limit.
//   --minutes N | --hours N   how long it runs; default 1 minute
//   --svg FILE                the picture; default build/soak-NAME.svg

import { writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { Housekeeping } from '../../../src/reconcile/housekeeping.ts'
import { formatReport, isOver, type Figure } from '../../bench/support/bench.ts'
import { quantile } from '../../bench/support/measure.ts'
import { LoopDelay, waitedForCpuMs } from '../../bench/support/process.ts'
import type { World } from '../../bench/support/world.ts'
import { formatChart } from './chart.ts'

export interface Subject {
  readonly name: string
  readonly about: string
  readonly world: World
  readonly answersPerSecond: number
  /** Learns one answer. One commit follows for all answers that are due together. */
  readonly answer: () => void
  /** Called once a second, outside of the timed part. */
  readonly everySecond?: (second: number, seconds: number) => void
  /** The longest delay of an answer by the process itself. */
  readonly lateMaxMs?: number
  /** The figures at the end, besides memory and delays. */
  readonly figures: (samples: Samples) => readonly Figure[]
}

/** One entry per second. */
export interface Samples {
  readonly seconds: number[]
  readonly residentMb: number[]
  readonly pairs: number[]
  /** Milliseconds from the moment when an answer was due until it could leave; the last value is of 1,000. */
  readonly p99Ms: number[]
  readonly worstMs: number[]
  /** The same without the time in which the process waited for a CPU that others used. */
  readonly ownMs: number[]
  readonly loopMs: number[]
}

const TICK_MS = 5
const ROWS = 12

export async function runSoak(subject: Subject): Promise<void> {
  const { values } = parseArgs({
    allowPositionals: true,
    options: {
      minutes: { type: 'string', default: '1' },
      hours: { type: 'string' },
      svg: { type: 'string', default: `build/soak-${subject.name}.svg` },
    },
  })
  const minutes = values.hours === undefined ? Number(values.minutes) : Number(values.hours) * 60
  const samples = await run(subject, Math.max(3, Math.round(minutes * 60)))
  writeFileSync(values.svg, picture(subject, samples))
  const figures = [...commonFigures(samples, subject.lateMaxMs), ...subject.figures(samples)]
  process.stdout.write(`${formatRows(samples)}\n`)
  process.stdout.write(formatReport({ bench: subject.name, about: subject.about, figures }))
  process.stdout.write(`picture: ${values.svg}\n`)
  if (figures.some(isOver)) process.exitCode = 1
}

async function run(subject: Subject, seconds: number): Promise<Samples> {
  const { core, transition } = subject.world
  const housekeeping = new Housekeeping({
    core,
    transition,
    onEvent: () => undefined,
    onHooks: () => undefined,
  })
  const samples: Samples = {
    seconds: [],
    residentMb: [],
    pairs: [],
    p99Ms: [],
    worstMs: [],
    ownMs: [],
    loopMs: [],
  }
  housekeeping.start()
  for (let second = 1; second <= seconds; second++) {
    const loop = new LoopDelay()
    loop.start()
    const { delays, ownMs } = await oneSecond(subject)
    samples.seconds.push(second)
    samples.residentMb.push(process.memoryUsage.rss() / 1e6)
    samples.pairs.push(core.names.entries.slots.used)
    samples.p99Ms.push(quantile(delays, 0.99))
    samples.worstMs.push(Math.max(...delays))
    samples.ownMs.push(ownMs)
    samples.loopMs.push(Math.max(...loop.stop().late, 0))
    subject.everySecond?.(second, seconds)
  }
  housekeeping.stop()
  return samples
}

interface Second {
  readonly delays: readonly number[]
  readonly ownMs: number
}

/** The answers of a second, and the delay of each. */
async function oneSecond({ answersPerSecond, answer, world }: Subject): Promise<Second> {
  const { names, committer } = world.core
  const began = performance.now()
  const delays: number[] = []
  let [waited, ownMs] = [waitedForCpuMs(), 0]
  const dueAt = (i: number): number => began + (i * 1000) / answersPerSecond
  while (delays.length < answersPerSecond) {
    const due = Math.min(
      answersPerSecond,
      Math.ceil(((performance.now() - began) * answersPerSecond) / 1000),
    )
    const first = delays.length
    // Like the proxy: batches of 64, each with a commit.
    for (let i = first; i < due;) {
      names.begin()
      const end = Math.min(due, i + 64)
      for (; i < end; i++) answer()
      committer.commit()
      const now = performance.now()
      while (delays.length < end) delays.push(now - dueAt(delays.length))
    }
    // All of these were due after the last turn of this loop.
    const before = waited
    waited = waitedForCpuMs()
    ownMs = Math.max(ownMs, ...delays.slice(first).map((delay) => delay - (waited - before)))
    await sleep(TICK_MS)
  }
  // The ticks of this loop are not the daemon's.
  return {
    delays: delays.map((delay) => Math.max(0, delay - TICK_MS)),
    ownMs: Math.max(0, ownMs - TICK_MS),
  }
}

function commonFigures(samples: Samples, lateMaxMs: number | undefined): readonly Figure[] {
  const { residentMb, seconds, worstMs, ownMs, loopMs, p99Ms } = samples
  const half = Math.floor(seconds.length / 2)
  const slope = slopeOf(seconds.slice(half), residentMb.slice(half))
  return [
    { name: 'resident memory at the end', value: residentMb.at(-1) ?? 0, unit: 'MB' },
    { name: 'its slope over the second half, a minute', value: slope * 60, unit: 'MB' },
    {
      name: 'answers late, median of the p99 of a second',
      value: quantile(p99Ms, 0.5),
      unit: 'ms',
    },
    { name: 'answers late, worst', value: Math.max(...worstMs), unit: 'ms' },
    {
      name: 'the same, without waiting for a CPU',
      value: Math.max(...ownMs),
      unit: 'ms',
      ...(lateMaxMs === undefined ? {} : { limit: lateMaxMs }),
    },
    { name: 'event loop late, worst', value: Math.max(...loopMs), unit: 'ms' },
  ]
}

/** The slope of the line of least squares through the points. */
export function slopeOf(x: readonly number[], y: readonly number[]): number {
  const mean = (values: readonly number[]): number =>
    values.reduce((sum, value) => sum + value, 0) / values.length
  const [middleX, middleY] = [mean(x), mean(y)]
  let [up, across] = [0, 0]
  x.forEach((value, i) => {
    up += (value - middleX) * ((y[i] ?? 0) - middleY)
    across += (value - middleX) ** 2
  })
  return across === 0 ? 0 : up / across
}

function picture({ name, about }: Subject, samples: Samples): string {
  return formatChart(`${name}: ${about}`, samples.seconds, [
    { name: 'resident memory', unit: 'MB', values: samples.residentMb },
    { name: 'pairs', unit: 'known', values: samples.pairs },
    { name: 'answers late, p99', unit: 'ms', values: samples.p99Ms },
    { name: 'event loop late, worst', unit: 'ms', values: samples.loopMs },
  ])
}

function formatRows(samples: Samples): string {
  const step = Math.max(1, Math.ceil(samples.seconds.length / ROWS))
  const head = ['second', 'RSS MB', 'pairs', 'p99 ms', 'worst ms', 'own ms', 'loop ms']
  const rows = samples.seconds
    .map((_, i) => i)
    .filter((i) => i % step === step - 1)
    .map((i) =>
      [
        samples.seconds[i]?.toFixed(0),
        samples.residentMb[i]?.toFixed(1),
        samples.pairs[i]?.toFixed(0),
        samples.p99Ms[i]?.toFixed(2),
        samples.worstMs[i]?.toFixed(2),
        samples.ownMs[i]?.toFixed(2),
        samples.loopMs[i]?.toFixed(2),
      ].map((cell) => cell ?? ''),
    )
  return [head, ...rows].map((cells) => cells.map((cell) => cell.padStart(10)).join('')).join('\n')
}
