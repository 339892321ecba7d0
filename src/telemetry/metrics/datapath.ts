// The datapath: its own counters by name, its mode, and what it refused. The names of events are those of
// the adapter, a closed list.

import type { Registry } from 'prom-client'
import { addCounter, addGauge } from './build.ts'
import type { MetricsSources } from './sources.ts'

const MS_PER_SECOND = 1000
const MODES = ['enforce', 'audit', 'bypass'] as const

export function addDatapathMetrics(registry: Registry, sources: MetricsSources): void {
  const { datapath } = sources.core
  addCounter(registry, {
    name: 'datapath_events_total',
    help: 'Verdicts, drops and writes as the datapath counts them',
    label: 'event',
    read: () => Object.entries(datapath.reports.counters()),
  })
  addCounter(registry, {
    name: 'datapath_flows_adopted_total',
    help: 'Flows that were listed at the start as older than enforcement: taken, or without room in the table',
    label: 'result',
    read: () => [
      ['taken', sources.adoption.counters.flows],
      ['no_room', sources.adoption.counters.notTaken],
    ],
  })
  addGauge(registry, {
    name: 'datapath_mode',
    help: '1 for the mode that is set',
    label: 'mode',
    read: () => MODES.map((mode) => [mode, sources.mode() === mode ? 1 : 0]),
  })
  addCommitMetrics(registry, sources)
}

/** What is asked of it, and what becomes of that. */
function addCommitMetrics(registry: Registry, sources: MetricsSources): void {
  const { committer } = sources.core
  addGauge(registry, {
    name: 'datapath_revision',
    help: 'Commits that changed something',
    read: () => committer.revision,
  })
  addGauge(registry, {
    name: 'datapath_desired_revision',
    help: 'The revision that will have all changes of now; above the datapath’s own while a commit is under way',
    read: () => committer.desired,
  })
  addGauge(registry, {
    name: 'datapath_commit_under_way_seconds',
    help: 'How long the datapath has been at a commit; 0 when there is none',
    read: () => committer.watch.underWayMs / MS_PER_SECOND,
  })
  addCounter(registry, {
    name: 'datapath_stalls_total',
    help: 'Commits that took longer than a second',
    read: () => committer.watch.stalls,
  })
  addGauge(registry, {
    name: 'datapath_refused_entries',
    help: 'Entries that the datapath refuses to take at present',
    read: () => committer.refused,
  })
  addRepairMetrics(registry, sources)
  addCounter(registry, {
    name: 'datapath_refusals_total',
    help: 'Entries that the datapath refused, tries again included',
    read: () => committer.failures,
  })
}

function addRepairMetrics(registry: Registry, sources: MetricsSources): void {
  addCounter(registry, {
    name: 'datapath_verified_total',
    help: 'Comparisons of all entries in the kernel with the wanted ones',
    read: () => sources.repair?.counters.walks ?? 0,
  })
  addCounter(registry, {
    name: 'datapath_repaired_entries_total',
    help: 'Entries that another program changed or deleted, and that were repaired',
    read: () => sources.repair?.counters.repaired ?? 0,
  })
  addCounter(registry, {
    name: 'intercept_repairs_total',
    help: 'Times that rules or routing of interception, taken away by somebody else, were put back',
    read: () => sources.interception?.counters.repairs ?? 0,
  })
  addGauge(registry, {
    name: 'intercept_in_force',
    help: 'Whether queries are brought to the listeners that intercept; absent without such listeners',
    read: () => {
      const isInForce = sources.interception?.isInForce
      return isInForce === undefined ? [] : Number(isInForce)
    },
  })
}
