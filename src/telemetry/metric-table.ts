// The types of a table of metrics. `/metrics` (metrics.ts) and docs/reference/metrics.md are made from such tables.

import type { Histogram } from '../core/tables/histogram.ts'

/** Numbers by label value. */
export type Labelled = Readonly<Record<string, number>> | Iterable<readonly [string, number]>

/** A row of the table. Its key is the name; the last word is the unit. A name in `_total` is a counter, else a gauge. */
export interface NumberMetric<Sources> {
  readonly help: string
  /** The name of the metric's only label. Set when `read` returns numbers by label value. */
  readonly label?: string
  /** Returns the value, or undefined while the metric has none; `/metrics` then leaves the metric out. */
  readonly read: (sources: Sources) => number | Labelled | undefined
}

/** A row for a metric with two labels. */
export interface PairMetric<Sources> {
  readonly help: string
  readonly labels: readonly [string, string]
  /** Returns the numbers by the values of both labels. */
  readonly pairs: (
    sources: Sources,
  ) => Iterable<readonly [first: string, second: string, n: number]>
}

/** A row for a histogram of times. The histograms count milliseconds, and `/metrics` has seconds. */
export interface TimeMetric<Sources> {
  readonly help: string
  /** The name of the metric's only label besides `le`. */
  readonly label?: string
  /** Returns the histogram, or histograms by label value. */
  readonly times: (sources: Sources) => Histogram | Iterable<readonly [string, Histogram]>
}

export type Metric<Sources> = NumberMetric<Sources> | PairMetric<Sources> | TimeMetric<Sources>

export type MetricTable<Sources> = Readonly<Record<string, Metric<Sources>>>

/** The names of the labels of a metric. */
export function labelsOf<Sources>(metric: Metric<Sources>): readonly string[] {
  if ('labels' in metric) return metric.labels
  return metric.label === undefined ? [] : [metric.label]
}

/** The type of a metric in Prometheus' text format. */
export function metricType<Sources>(
  name: string,
  metric: Metric<Sources>,
): 'counter' | 'gauge' | 'histogram' {
  if ('times' in metric) return 'histogram'
  return name.endsWith('_total') ? 'counter' : 'gauge'
}
