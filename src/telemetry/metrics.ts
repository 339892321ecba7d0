// Makes the text of `/metrics` from a table of metrics (src/daemon/metrics.ts). Counters are plain numbers that a scrape reads, so the
// packet path does not call prom-client. The cost of a scrape is the cost of these reads.

import { monitorEventLoopDelay } from 'node:perf_hooks'
import { Counter, Gauge, Registry } from 'prom-client'

export const PREFIX = 'namegate_'

/** The media type of the text that `expose` returns. */
export const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** Numbers by label value. */
export type Labelled = Readonly<Record<string, number>> | Iterable<readonly [string, number]>

/** A row of the table. Its key is the name without prefix; the last word is the unit. A name in `_total` is a counter, else a gauge. */
export interface Metric<Sources> {
  readonly help: string
  /** The name of the metric's only label. Set when `read` returns numbers by label value. */
  readonly label?: string
  /** Returns the value, or undefined while the metric has none; `/metrics` then leaves the metric out. */
  readonly read: (sources: Sources, loop: EventLoopDelay) => number | Labelled | undefined
}

export type MetricTable<Sources> = Readonly<Record<string, Metric<Sources>>>

export class Metrics<Sources> {
  readonly #registry = new Registry()
  readonly #loop = new EventLoopDelay()
  readonly #instruments: readonly Instrument<Sources>[]
  readonly #sources: () => Sources

  /** `sources` is called once in each scrape. */
  constructor(table: MetricTable<Sources>, sources: () => Sources) {
    this.#sources = sources
    this.#instruments = Object.entries(table).map(([name, metric]) => this.#make(name, metric))
  }

  /** Returns all metrics in Prometheus' text format, version 0.0.4. */
  async expose(): Promise<string> {
    const sources = this.#sources()
    const texts: Promise<string>[] = []
    for (const { name, metric, value } of this.#instruments) {
      const reading = metric.read(sources, this.#loop)
      if (reading === undefined) continue
      value.reset()
      for (const [labels, count] of samples(metric.label, reading)) value.inc(labels, count)
      texts.push(this.#registry.getSingleMetricAsString(name))
    }
    return `${(await Promise.all(texts)).join('\n\n')}\n`
  }

  stop(): void {
    this.#loop.stop()
    this.#registry.clear()
  }

  #make(nameInTable: string, metric: Metric<Sources>): Instrument<Sources> {
    const name = PREFIX + nameInTable
    const { help, label } = metric
    const labelNames = label === undefined ? [] : [label]
    const Kind = isCounter(name) ? Counter : Gauge
    return {
      name,
      metric,
      value: new Kind({ name, help, labelNames, registers: [this.#registry] }),
    }
  }
}

interface Instrument<Sources> {
  readonly name: string
  readonly metric: Metric<Sources>
  readonly value: Counter | Gauge
}

export function isCounter(name: string): boolean {
  return name.endsWith('_total')
}

function* samples(
  label: string | undefined,
  reading: number | Labelled,
): Iterable<readonly [labels: Record<string, string>, value: number]> {
  if (typeof reading === 'number') yield [{}, reading]
  else if (label !== undefined)
    for (const [value, n] of pairsOf(reading)) yield [{ [label]: value }, n]
}

function pairsOf(labelled: Labelled): Iterable<readonly [string, number]> {
  return isPairs(labelled) ? labelled : Object.entries(labelled)
}

function isPairs(labelled: Labelled): labelled is Iterable<readonly [string, number]> {
  return Symbol.iterator in labelled
}

/** The interval between samples, in milliseconds. A sample contains the interval, so the interval is subtracted. */
const RESOLUTION_MS = 10
const QUANTILES = [50, 99, 99.9, 100] as const

/** Measures how late the event loop is. Sampling wakes the process a hundred times a second, so sampling begins with the first read. */
class EventLoopDelay {
  readonly #delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })

  /** Lateness in seconds by quantile (`0.5`, ..., `1`) since the last call. */
  quantiles(): readonly (readonly [quantile: string, seconds: number])[] {
    const rows = QUANTILES.map((percent): [string, number] => {
      const late = this.#delay.percentile(percent) / 1e9 - RESOLUTION_MS / 1e3
      return [String(percent / 100), Math.max(0, late)]
    })
    this.#delay.enable()
    this.#delay.reset()
    return rows
  }

  stop(): void {
    this.#delay.disable()
  }
}
