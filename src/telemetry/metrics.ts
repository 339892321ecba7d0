// Makes the text of `/metrics` from the tables of metrics (src/daemon/metrics.ts, process-metrics.ts). Counters are plain numbers that a
// scrape reads, so the packet path does not call prom-client. The cost of a scrape is the cost of these reads.

import { Counter, Gauge, Registry } from 'prom-client'
import {
  labelsOf,
  metricType,
  type Labelled,
  type Metric,
  type MetricTable,
} from './metric-table.ts'
import { PROCESS_METRICS } from './process-metrics.ts'
import { ProcessReader, type ProcessReadings } from './process-reader.ts'
import { TimeHistogram } from './time-histogram.ts'

/** Begins the name of every metric of namegate. The metrics of the process have the names that are usual for Node.js. */
export const PREFIX = 'namegate_'

/** The media type of the text that `expose` returns. */
export const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

interface Instrument<Sources> {
  readonly name: string
  /** Gives the present values to the registry. Returns false while the metric has none. */
  readonly update: (sources: Sources) => boolean
}

export class Metrics<Sources> {
  readonly #registry = new Registry()
  readonly #reader = new ProcessReader()
  readonly #ofTable: readonly Instrument<Sources>[]
  readonly #ofProcess: readonly Instrument<ProcessReadings>[]
  readonly #sources: () => Sources

  /** `sources` is called once in each scrape. The names of the table get the prefix. */
  constructor(table: MetricTable<Sources>, sources: () => Sources) {
    this.#sources = sources
    const registry = this.#registry
    this.#ofTable = Object.entries(table).map(([name, metric]) =>
      makeInstrument(registry, PREFIX + name, metric),
    )
    this.#ofProcess = Object.entries(PROCESS_METRICS).map(([name, metric]) =>
      makeInstrument(registry, name, metric),
    )
  }

  /** Returns all metrics in Prometheus' text format, version 0.0.4. */
  async expose(): Promise<string> {
    const readings = await this.#reader.read()
    const ofTable = this.#update(() => true)
    const ofProcess = this.#ofProcess.flatMap(({ name, update }) =>
      update(readings) ? [name] : [],
    )
    return await this.#text([...ofTable, ...ofProcess])
  }

  /** Returns the text of the table's metrics whose name (with prefix) `wants` takes. The readings of the process stay as they are. */
  async select(wants: (name: string) => boolean): Promise<string> {
    return await this.#text(this.#update(wants))
  }

  #update(wants: (name: string) => boolean): readonly string[] {
    const sources = this.#sources()
    return this.#ofTable.flatMap(({ name, update }) =>
      wants(name) && update(sources) ? [name] : [],
    )
  }

  async #text(names: readonly string[]): Promise<string> {
    const texts = names.map((name) => this.#registry.getSingleMetricAsString(name))
    return `${(await Promise.all(texts)).join('\n\n')}\n`
  }

  stop(): void {
    this.#reader.stop()
    this.#registry.clear()
  }
}

function makeInstrument<Sources>(
  registry: Registry,
  name: string,
  metric: Metric<Sources>,
): Instrument<Sources> {
  const registration = {
    name,
    help: metric.help,
    labelNames: [...labelsOf(metric)],
    registers: [registry],
  }
  if ('times' in metric) {
    const value = new TimeHistogram(registration)
    return { name, update: (sources) => value.set(metric.label, metric.times(sources)) }
  }
  const Kind = metricType(name, metric) === 'counter' ? Counter : Gauge
  const value = new Kind(registration)
  const update = (sources: Sources): boolean => {
    const samples = samplesOf(metric, sources)
    if (samples === undefined) return false
    value.reset()
    for (const [labels, count] of samples) value.inc(labels, count)
    return true
  }
  return { name, update }
}

type Samples = Iterable<readonly [labels: Record<string, string>, value: number]>

function samplesOf<Sources>(
  metric: Exclude<Metric<Sources>, { readonly times: unknown }>,
  sources: Sources,
): Samples | undefined {
  if ('pairs' in metric) {
    const [first, second] = metric.labels
    return [...metric.pairs(sources)].map(([a, b, n]) => [{ [first]: a, [second]: b }, n])
  }
  const { label, read } = metric
  const reading = read(sources)
  if (reading === undefined) return undefined
  if (typeof reading === 'number') return [[{}, reading]]
  if (label === undefined) return []
  return [...pairsOf(reading)].map(([value, n]) => [{ [label]: value }, n])
}

function pairsOf(labelled: Labelled): Iterable<readonly [string, number]> {
  return isPairs(labelled) ? labelled : Object.entries(labelled)
}

function isPairs(labelled: Labelled): labelled is Iterable<readonly [string, number]> {
  return Symbol.iterator in labelled
}
