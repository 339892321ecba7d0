// `closeEndpoints` closes endpoints before a daemon runs, for `namegate datapath close`: the endpoints of the config, and the endpoints
// that the last daemon saved. A closed endpoint can send only DNS until a daemon has loaded policy. That daemon finds the closed endpoints
// in the kernel and continues with them. An interface that does not exist yet is closed by its name. The command is for the first step of a
// pod, and for the boot of a machine (deploy/systemd/namegate-early.service).

import type { Config } from '../../config/config.ts'
import { systemClock } from '../../core/clock.ts'
import { UnavailableError } from '../../core/errors.ts'
import { endpointId, generation } from '../../core/ids.ts'
import { fencedPatterns } from '../../daemon/parts.ts'
import type {
  CommitResult,
  DatapathDump,
  EndpointEntry,
  HookState,
} from '../../datapath/entries.ts'
import type { Datapath } from '../../datapath/datapath.ts'
import { EbpfDatapath } from '../../datapath/ebpf/adapter.ts'
import { PrefixBatch } from '../../datapath/prefix-batch.ts'
import { endpointsToClose, type EndpointToClose } from './endpoints-to-close.ts'
import { Locks } from '../../daemon/locks.ts'
import { openDatapath } from '../../daemon/open-datapath.ts'
import { SILENT } from '../../telemetry/silent.ts'

export interface Closed {
  /** Names of endpoints that this command closed. */
  readonly closed: readonly string[]
  /** Names of endpoints whose interface or cgroup does not exist yet. Interfaces are closed as soon as they appear. */
  readonly waiting: readonly string[]
  /** Names of endpoints that the kernel already knew. They stay as they were. */
  readonly kept: readonly string[]
  /** Faults of endpoints files. If there are faults, only the endpoints that the last daemon saved were closed. */
  readonly faults: readonly string[]
}

/**
 * Closes the endpoints. Throws InvalidInputError if endpoints files have faults and no daemon saved an endpoint. Throws UnavailableError if
 * a daemon runs, the privilege is missing, or the kernel refuses.
 */
export async function closeEndpoints(config: Config): Promise<Closed> {
  if (config.datapath.kind === 'memory') {
    throw new UnavailableError(
      'Cannot close endpoints: datapath.kind memory enforces nothing: use ebpf or nftables',
    )
  }
  const { endpoints, highest, faults } = endpointsToClose(config)
  const locks = new Locks(config, SILENT, false)
  const datapath = openDatapath(config)
  try {
    const restored = datapath.start()
    const entries = toEntries(endpoints, datapath, restored, highest)
    const [failure] = await commit(datapath, entries)
    if (failure !== undefined) {
      throw new UnavailableError(`Cannot close endpoints: the kernel refuses: ${failure.code}`)
    }
    datapath.fences.set(fencedPatterns(config))
    datapath.hooks.refresh()
    const known = new Set<number>(restored.endpoints.map(({ id }) => id))
    const namesOf = (is: (entry: EndpointEntry) => boolean): readonly string[] => {
      return endpoints.filter((_, i) => entries[i] !== undefined && is(entries[i])).map(nameOf)
    }
    const waiting = namesOf(({ id }) => datapath.hooks.stateOf(id).kind === 'waiting')
    const gate = gateState(datapath)
    if (waiting.length > 0 && gate.kind === 'failed') {
      const message = `Cannot close interfaces that do not exist yet (${waiting.join(', ')}): that needs Linux 6.4`
      throw new UnavailableError(`${message}: ${gate.reason}`)
    }
    const [closed, kept] = [namesOf(({ id }) => !known.has(id)), namesOf(({ id }) => known.has(id))]
    return { closed, waiting, kept, faults }
  } finally {
    datapath.stop({ leaveEnforcing: true })
    locks.release()
  }
}

function nameOf({ name }: EndpointToClose): string {
  return name
}

/** Returns the state of the gate, which closes interfaces that do not exist yet by name. */
function gateState(datapath: Datapath): HookState {
  return datapath instanceof EbpfDatapath ? datapath.gateState() : { kind: 'attached' }
}

/**
 * Returns the kernel's entries, in the order of `endpoints`. An endpoint that the kernel already knows keeps its number. Any other endpoint
 * receives a number that was never used.
 */
function toEntries(
  endpoints: readonly EndpointToClose[],
  datapath: Datapath,
  restored: DatapathDump,
  highest: number,
): readonly EndpointEntry[] {
  const fenced = new Map(restored.endpoints.map((each) => [each.hookKey, each]))
  const ids = [
    ...restored.endpoints.map(({ id }) => id),
    ...restored.policies.map((each) => each.endpoint),
  ]
  let last = Math.max(highest, 0, ...ids)
  return endpoints.map(({ hook, audit, addresses: sources }) => {
    const known = fenced.get(datapath.hooks.keyOf(hook) ?? 'none')
    if (known !== undefined) return { ...known, hook }
    const id = endpointId(++last)
    return { id, generation: generation(id), hook, enforcing: true, audit, scoped: false, sources }
  })
}

async function commit(
  datapath: Datapath,
  endpointUpserts: readonly EndpointEntry[],
): Promise<CommitResult> {
  const none = new PrefixBatch(1)
  let ended: CommitResult | undefined
  datapath.onCommitted((result) => (ended = result))
  ended = datapath.commit({
    policyUpserts: [],
    prefixUpserts: none,
    endpointUpserts,
    endpointRemovals: [],
    prefixRemovals: none,
    policyRemovals: [],
  })
  // Waits in a loop, because nothing else keeps the process alive until the kernel has answered.
  while (ended === undefined) await new Promise<void>((done) => systemClock.soon(done))
  return ended
}
