// Every bound: use, bound and hits.

import type { Registry } from 'prom-client'
import { addCounter, addGauge } from './build.ts'
import type { MetricsSources } from './sources.ts'

export function addLimitMetrics(registry: Registry, sources: MetricsSources): void {
  addGauge(registry, {
    name: 'limit_use',
    help: 'How much of a bound is used, in its own unit',
    label: 'limit',
    read: () =>
      sources.limits().flatMap(({ limit, use }) => (use === undefined ? [] : [[limit, use]])),
  })
  addGauge(registry, {
    name: 'limit_bound',
    help: 'The bound, in its own unit',
    label: 'limit',
    read: () => sources.limits().map(({ limit, bound }) => [limit, bound]),
  })
  addCounter(registry, {
    name: 'limit_hits_total',
    help: 'Times that a bound was hit',
    label: 'limit',
    read: () => sources.limits().map(({ limit, hits }) => [limit, hits]),
  })
}
