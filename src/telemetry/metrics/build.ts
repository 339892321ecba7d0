// How metrics are made: a name, a help text, and a function that reads plain counters when somebody asks. The
// packet path never meets prom-client; a scrape costs what the reads cost. Label values come from closed
// lists or from the configuration, never from a packet, so a client can neither grow the exposition nor
// write into it.

import { Counter, Gauge, type Registry } from 'prom-client'

export const PREFIX = 'namegate_'

/** What a metric is now: one number, or one a label value. */
export type Reading = number | Iterable<readonly [labelValue: string, value: number]>

export interface MetricOptions {
  /** Without prefix; the unit is its last word, `total` behind it for counters. */
  readonly name: string
  readonly help: string
  /** Name of the one label, when `read` gives values by label. */
  readonly label?: string
  readonly read: () => Reading
}

/** A number that only grows. */
export function addCounter(registry: Registry, options: MetricOptions): void {
  new Counter({
    ...describe(registry, options),
    collect() {
      this.reset()
      for (const [labels, value] of samples(options)) this.inc(labels, value)
    },
  })
}

/** A number that goes up and down. */
export function addGauge(registry: Registry, options: MetricOptions): void {
  new Gauge({
    ...describe(registry, options),
    collect() {
      this.reset()
      for (const [labels, value] of samples(options)) this.set(labels, value)
    },
  })
}

function describe(registry: Registry, { name, help, label }: MetricOptions) {
  return {
    name: PREFIX + name,
    help,
    labelNames: label === undefined ? [] : [label],
    registers: [registry],
  }
}

function* samples({
  label,
  read,
}: MetricOptions): Iterable<readonly [labels: Record<string, string>, value: number]> {
  const reading = read()
  if (typeof reading === 'number') yield [{}, reading]
  else if (label !== undefined) for (const [value, n] of reading) yield [{ [label]: value }, n]
}
