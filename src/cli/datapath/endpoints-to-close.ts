// `endpointsToClose` finds the endpoints to close before a daemon runs: the endpoints of the configuration, and the endpoints that the last
// daemon saved. With the saved endpoints, a file that is broken or missing at boot opens no endpoint. `endpointsToClose` only reads.

import type { Config } from '../../config/config.ts'
import { SavedEndpoints } from '../../restore/saved-endpoints.ts'
import { systemBootClock, systemClock } from '../../core/clock.ts'
import { formatFault, InvalidInputError, messageOf } from '../../core/errors.ts'
import type { Prefix } from '../../core/ip.ts'
import type { Hook } from '../../datapath/entries.ts'
import { readEndpointFiles, withInterfaceAddresses } from '../../sources/files/endpoint-files.ts'
import { openDisk } from '../../state/files/disk.ts'
import { readBootId, stampOf } from '../../state/stamp.ts'
import { readState } from '../../state/read-state.ts'

export interface EndpointToClose {
  readonly name: string
  readonly hook: Hook
  readonly audit: boolean
  readonly addresses: readonly Prefix[]
}

export interface EndpointsToClose {
  readonly endpoints: readonly EndpointToClose[]
  /** The highest endpoint number that was ever saved, or 0 if none was saved. */
  readonly highest: number
  /** Faults of endpoints files. If there are faults, `endpoints` has only the saved endpoints. */
  readonly faults: readonly string[]
}

/** Returns the endpoints to close. Throws InvalidInputError if endpoints files have faults and no endpoint is saved. */
export function endpointsToClose({ endpoints, state }: Config): EndpointsToClose {
  const saved = readSaved(state.directory)
  const written = saved?.all.map((each) => ({ ...each, audit: false })) ?? []
  const highest = saved?.highest ?? 0
  try {
    return {
      endpoints: union(readEndpointFiles(endpoints.files, withInterfaceAddresses), written),
      highest,
      faults: [],
    }
  } catch (error) {
    if (written.length === 0) throw error
    return { endpoints: union([], written), highest, faults: textsOf(error) }
  }
}

/** Returns the endpoints that the last daemon saved, or undefined if there is no saved state. */
function readSaved(folder: string): SavedEndpoints | undefined {
  const now = { ...stampOf(systemClock, systemBootClock), bootId: readBootId() }
  // `pairsMax: 0` reads no entries, because only endpoints are needed.
  const { state } = readState({ disk: openDisk(folder), pairsMax: 0, now })
  return state && new SavedEndpoints(state)
}

/** Returns the endpoints that have an interface or cgroup. If two endpoints have the same one, returns the first. */
function union(...lists: readonly (readonly EndpointToClose[])[]): readonly EndpointToClose[] {
  const byHook = new Map<string, EndpointToClose>()
  for (const endpoint of lists.flat()) {
    const { hook } = endpoint
    if (hook.kind === 'none') continue
    const key = hook.kind === 'interface' ? `interface:${hook.name}` : `cgroup:${hook.path}`
    if (!byHook.has(key)) byHook.set(key, endpoint)
  }
  return [...byHook.values()]
}

function textsOf(error: unknown): readonly string[] {
  if (error instanceof InvalidInputError) return error.faults.map(formatFault)
  return [messageOf(error)]
}
