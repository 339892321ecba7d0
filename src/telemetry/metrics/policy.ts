// Policy: what is configured, and how far it is realized.

import type { Registry } from 'prom-client'
import { addCounter, addGauge } from './build.ts'
import type { MetricsSources } from './sources.ts'

const MS_PER_SECOND = 1000
const FILE_STATES = ['in-force', 'last-good', 'rejected'] as const

export function addPolicyMetrics(registry: Registry, sources: MetricsSources): void {
  const { policies, transition, core, endpoints } = sources
  addGauge(registry, {
    name: 'policies',
    help: 'Policies in force',
    read: () => policies.policies.length,
  })
  addGauge(registry, {
    name: 'policy_files',
    help: 'Policy files by state; last-good and rejected ones have faults',
    label: 'state',
    read: () => countStates(sources.policyFiles()),
  })
  addGauge(registry, {
    name: 'record_files',
    help: 'Files of endpoints and resources by state; last-good and rejected ones have faults',
    label: 'state',
    read: () => countStates(sources.recordFiles()),
  })
  if (sources.sourceAges !== undefined) addAges(registry, sources.sourceAges)
  addGauge(registry, {
    name: 'policy_revision',
    help: 'Revision of policy: desired, and realized by the datapath',
    label: 'state',
    read: () => [
      ['desired', policies.revision],
      ['realized', transition.realizedRevision],
    ],
  })
  addGauge(registry, {
    name: 'selectors',
    help: 'Selectors in use',
    read: () => core.selectors.size,
  })
  addGauge(registry, {
    name: 'empty_deny_peers',
    help: 'Peers of deny rules that select nothing: what they name is not denied',
    read: () => sources.emptyDenies.texts.length,
  })
  addGauge(registry, {
    name: 'endpoints',
    help: 'Endpoints known',
    read: () => endpoints.registry.size,
  })
  addCounter(registry, {
    name: 'policy_entries_refused_total',
    help: 'Policy entries that a full map had no room for',
    read: () => core.policyMaps.overflows,
  })
}

function countStates(
  files: Iterable<{ readonly state: string }>,
): readonly (readonly [state: string, count: number])[] {
  const states = [...files].map(({ state }) => state)
  return FILE_STATES.map((state) => [state, states.filter((each) => each === state).length])
}

function addAges(registry: Registry, sources: NonNullable<MetricsSources['sourceAges']>): void {
  addGauge(registry, {
    name: 'source_age_seconds',
    help: 'Time since every path of a kind of source could be looked at',
    label: 'source',
    read: () => [...sources.ages()].map(([kind, ms]) => [kind, ms / MS_PER_SECOND]),
  })
}
