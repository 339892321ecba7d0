// Makes the text of `/metrics` from a table of metrics (src/daemon/metrics.ts). Counters are plain numbers that a scrape reads, so the
// packet path does not call prom-client. The cost of a scrape is the cost of these reads.

import { monitorEventLoopDelay } from 'node:perf_hooks'
import { Counter, Gauge, Registry } from 'prom-client'
import type { Histogram } from '../core/tables/histogram.ts'
import { TimeHistogram } from './time-histogram.ts'

export const PREFIX = 'namegate_'

/** The media type of the text that `expose` returns. */
export const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** Numbers by label value. */
export type Labelled = Readonly<Record<string, number>> | Iterable<readonly [string, number]>

/** A row of the table. Its key is the name without prefix; the last word is the unit. A name in `_total` is a counter, else a gauge. */
export interface NumberMetric<Sources> {
  readonly help: string
  /** The name of the metric's only label. Set when `read` returns numbers by label value. */
  readonly label?: string
  /** Returns the value, or undefined while the metric has none; `/metrics` then leaves the metric out. */
  readonly read: (sources: Sources, loop: EventLoopDelay) => number | Labelled | undefined
}

/** A row for a histogram of times. The histograms count milliseconds, and `/metrics` has seconds. */
export interface TimeMetric<Sources> {
  readonly help: string
  /** The name of the metric's only label besides `le`. */
  readonly label?: string
  /** Returns the histogram, or histograms by label value. */
  readonly times: (sources: Sources) => Histogram | Iterable<readonly [string, Histogram]>
}

export type Metric<Sources> = NumberMetric<Sources> | TimeMetric<Sources>

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
    for (const { name, update } of this.#instruments) {
      if (update(sources)) texts.push(this.#registry.getSingleMetricAsString(name))
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
    const registration = { name, help, labelNames, registers: [this.#registry] }
    if ('times' in metric) {
      const value = new TimeHistogram(registration)
      return { name, update: (sources) => value.set(label, metric.times(sources)) }
    }
    const Kind = isCounter(name) ? Counter : Gauge
    const value = new Kind(registration)
    const update = (sources: Sources): boolean => {
      const reading = metric.read(sources, this.#loop)
      if (reading === undefined) return false
      value.reset()
      for (const [labels, count] of samples(label, reading)) value.inc(labels, count)
      return true
    }
    return { name, update }
  }
}

interface Instrument<Sources> {
  readonly name: string
  /** Gives the present values to the registry. Returns false while the metric has none. */
  readonly update: (sources: Sources) => boolean
}

/** The type of a metric in Prometheus' text format. */
export function metricType<Sources>(name: string, metric: Metric<Sources>): string {
  if ('times' in metric) return 'histogram'
  return isCounter(name) ? 'counter' : 'gauge'
}

function isCounter(name: string): boolean {
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
