// Flows kept outside of the process: what was written, and what was not.

import type { Registry } from 'prom-client'
import { addCounter, addGauge } from './build.ts'
import type { MetricsSources } from './sources.ts'

export function addFlowMetrics(registry: Registry, { keptFlows }: MetricsSources): void {
  if (keptFlows === undefined) return
  addGauge(registry, {
    name: 'flow_kinds',
    help: 'Different flows that are remembered, so that repetitions are counted',
    read: () => keptFlows.remembered,
  })
  addCounter(registry, {
    name: 'flow_lines_total',
    help: 'Lines about flows that an output took',
    label: 'output',
    read: () => keptFlows.lines(),
  })
  addCounter(registry, {
    name: 'flow_lines_refused_total',
    help: 'Lines about flows that an output had no room for',
    label: 'output',
    read: () => keptFlows.refused(),
  })
  addCounter(registry, {
    name: 'flows_lost_total',
    help: 'Flows that are in no line: too many different ones at once, or not looked at in time',
    read: () => keptFlows.lost,
  })
  addCounter(registry, {
    name: 'flow_write_failures_total',
    help: 'Writes of flows to disk that failed; they are tried again',
    read: () => keptFlows.failed,
  })
}
