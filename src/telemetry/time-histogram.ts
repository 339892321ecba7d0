// TimeHistogram gives histograms that namegate counted itself (src/core/tables/histogram.ts) to the registry of prom-client. The packet
// path counts without prom-client, and a scrape copies the counts.

import { Histogram as Registered, type HistogramConfiguration } from 'prom-client'
import { Histogram } from '../core/tables/histogram.ts'

const MS_PER_SECOND = 1000

interface Sample {
  readonly metricName: string
  readonly labels: Readonly<Record<string, string | number>>
  readonly value: number
}

export class TimeHistogram extends Registered {
  readonly #name: string
  readonly #help: string
  #samples: readonly Sample[] = []

  constructor(configuration: HistogramConfiguration<string>) {
    super(configuration)
    this.#name = configuration.name
    this.#help = configuration.help
  }

  /** Copies the present counts of one histogram, or of one for each value of `label`. They count milliseconds. Returns true. */
  set(
    label: string | undefined,
    times: Histogram | Iterable<readonly [string, Histogram]>,
  ): boolean {
    this.#samples =
      times instanceof Histogram
        ? [...this.#samplesOf(times, {})]
        : [...times].flatMap(([value, each]) => [
            ...this.#samplesOf(each, label === undefined ? {} : { [label]: value }),
          ])
    return true
  }

  /** The registry calls this method of prom-client's class when it writes the metric as text. */
  async getForPromString(): Promise<object> {
    const metric = { name: this.#name, help: this.#help, type: 'histogram', aggregator: 'sum' }
    return await Promise.resolve({ ...metric, values: this.#samples })
  }

  *#samplesOf(histogram: Histogram, labels: Sample['labels']): Iterable<Sample> {
    const bucket = `${this.#name}_bucket`
    let count = 0
    for (const [i, bound] of [...histogram.bounds, Infinity].entries()) {
      count += histogram.counts[i]!
      const le = bound === Infinity ? '+Inf' : bound / MS_PER_SECOND
      yield { metricName: bucket, labels: { ...labels, le }, value: count }
    }
    yield { metricName: `${this.#name}_sum`, labels, value: histogram.sum / MS_PER_SECOND }
    yield { metricName: `${this.#name}_count`, labels, value: count }
  }
}
