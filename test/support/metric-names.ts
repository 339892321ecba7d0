// The names of all series of /metrics. A histogram has three.

import { METRICS } from '../../src/daemon/metrics.ts'
import { metricType, type Metric } from '../../src/telemetry/metric-table.ts'
import { PREFIX } from '../../src/telemetry/metrics.ts'
import { PROCESS_METRICS } from '../../src/telemetry/process-metrics.ts'

export function metricNames(): ReadonlySet<string> {
  const all = [
    ...Object.entries(METRICS).flatMap(([name, metric]) => seriesOf(PREFIX + name, metric)),
    ...Object.entries(PROCESS_METRICS).flatMap(([name, metric]) => seriesOf(name, metric)),
  ]
  return new Set(all)
}

function seriesOf<Sources>(name: string, metric: Metric<Sources>): readonly string[] {
  if (metricType(name, metric) !== 'histogram') return [name]
  return ['bucket', 'sum', 'count'].map((ending) => `${name}_${ending}`)
}
