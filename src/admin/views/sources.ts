// Lists the sources of policies, endpoints and resources: the configured files by kind, and the collections of a cluster.

import { isObjectName } from '../../core/object-names.ts'
import type { SourceShape } from '../document/cluster-shapes.ts'
import type { AdminState } from '../state.ts'

const MS_PER_SECOND = 1000

export function* sourceRows(state: AdminState): Iterable<SourceShape> {
  const { sourceAges, cluster } = state
  const policyFiles = [...state.policyFiles()].filter(({ path }) => !isObjectName(path))
  const counts: Readonly<Record<string, { readonly objects: number; readonly faulty: number }>> = {
    policies: {
      objects: policyFiles.reduce((sum, { policies }) => sum + policies.length, 0),
      faulty: policyFiles.filter(({ faults }) => faults.length > 0).length,
    },
    endpoints: {
      objects: [...state.endpoints.registry].filter(({ origin }) => !isObjectName(origin ?? ''))
        .length,
      faulty: 0,
    },
    resources: { objects: [...state.resources()].length, faulty: 0 },
  }
  for (const [kind, ms] of sourceAges?.ages() ?? []) {
    // The collections have rows of their own.
    if (kind === 'collections') continue
    const isSilent = sourceAges?.silent.includes(kind) === true
    const age = Math.round(ms / MS_PER_SECOND)
    const { objects = 0, faulty = 0 } = counts[kind] ?? {}
    const reason = isSilent ? 'not read for longer than sources.max-age' : ''
    yield {
      origin: 'files',
      kind,
      state: isSilent ? 'silent' : 'read',
      objects,
      faulty,
      held: 0,
      age,
      reason,
    }
  }
  for (const collection of cluster?.collections ?? []) yield { origin: 'kubernetes', ...collection }
}
