// What is kept over restarts: how much, how old, and what the disk refused.

import type { Registry } from 'prom-client'
import { addCounter, addGauge } from './build.ts'
import type { KeptStateSource, MetricsSources } from './sources.ts'

export function addStateMetrics(
  registry: Registry,
  { state, fileTexts }: { state: KeptStateSource } & Pick<MetricsSources, 'fileTexts'>,
): void {
  addGauge(registry, {
    name: 'state_source_files_not_kept',
    help: 'Files of sources in force whose text is too long to be kept over restarts',
    read: () => fileTexts?.().tooLong ?? 0,
  })
  addGauge(registry, {
    name: 'state_bytes',
    help: 'Size of what is kept over restarts: the last image, and the journal since',
    label: 'file',
    read: () => [
      ['image', state.use.imageOctets],
      ['journal', state.use.journalOctets],
    ],
  })
  addGauge(registry, {
    name: 'state_generation',
    help: 'Generation of the newest file that is kept over restarts',
    read: () => state.use.generation,
  })
  addGauge(registry, {
    name: 'state_write_age_seconds',
    help: 'Time since the disk took something that is kept over restarts',
    read: () => state.use.age,
  })
  addCounter(registry, {
    name: 'state_faults_total',
    help: 'Writes of what is kept over restarts that failed, by cause',
    label: 'cause',
    read: () => Object.entries(state.use.faults),
  })
}
