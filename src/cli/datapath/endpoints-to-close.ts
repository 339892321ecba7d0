// The endpoints that are closed before a daemon runs: those of the configuration, and those that the last daemon saved, so that a
// file that is broken or missing at boot opens no endpoint. Reads only.

import type { Config } from '../../config/config.ts'
import { SavedEndpoints } from '../../restore/saved-endpoints.ts'
import { systemBootClock, systemClock } from '../../core/clock.ts'
import { formatFault, InvalidInputError, messageOf } from '../../core/errors.ts'
import type { Prefix } from '../../core/ip.ts'
import type { Hook } from '../../datapath/entries.ts'
import { readEndpointFiles, withInterfaceAddresses } from '../../sources/files/endpoint-files.ts'
import { openDisk } from '../../state/files/disk.ts'
import { readBootId } from '../../state/open-state.ts'
import { readState } from '../../state/read-state.ts'
import { stampOf } from '../../state/stamp.ts'

export interface EndpointToClose {
  readonly name: string
  readonly hook: Hook
  readonly audit: boolean
  readonly addresses: readonly Prefix[]
}

export interface EndpointsToClose {
  readonly endpoints: readonly EndpointToClose[]
  /** The highest number that was ever written down; 0: none. */
  readonly highest: number
  /** What is wrong with endpoints files; then those that were written down stand for them. */
  readonly faults: readonly string[]
}

/** Throws InvalidInputError for faulty endpoints files where nothing is written down that could stand for them. */
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

/** What the last daemon wrote down. The same files may be written by nobody while this reads: a daemon would have the locks. */
function readSaved(folder: string): SavedEndpoints | undefined {
  const now = { ...stampOf(systemClock, systemBootClock), bootId: readBootId() }
  // Endpoints alone are wanted, so no pair is kept.
  const { state } = readState({ disk: openDisk(folder), pairsMax: 0, now })
  return state && new SavedEndpoints(state)
}

/** Those that something can fence; of two at one hook the first. */
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
