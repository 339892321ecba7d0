// `namegate datapath close`: fences the endpoints of a config, and those that the last daemon saved, before a daemon runs. They may
// do DNS only until policy is loaded; the daemon that starts later takes them over as they are. An interface that does not exist
// yet is closed by its name. For the first step of a pod, and of a machine that comes up (deploy/systemd/namegate-early.service).

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
  /** Names of those that are closed now. */
  readonly closed: readonly string[]
  /** Of these, whose interface or cgroup is not there yet: interfaces are closed as soon as they appear. */
  readonly waiting: readonly string[]
  /** Names of those that were fenced before, and stay as they were. */
  readonly kept: readonly string[]
  /** What is wrong with endpoints files; what the last daemon wrote down stood for them. */
  readonly faults: readonly string[]
}

/**
 * Throws InvalidInputError for faulty endpoints files that nothing written down stands for; UnavailableError when there is a
 * daemon, no privilege, or the kernel refuses.
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
      const message = `Cannot close what is not there yet (${waiting.join(', ')}): it needs Linux 6.4`
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

/** Whether interfaces are closed by name. */
function gateState(datapath: Datapath): HookState {
  return datapath instanceof EbpfDatapath ? datapath.gateState() : { kind: 'attached' }
}

/** In the order of `endpoints`. What the kernel fences already stays as it is there; others get numbers that nobody had. */
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
  // Nothing else keeps the process alive until the kernel has answered.
  while (ended === undefined) await new Promise<void>((done) => systemClock.soon(done))
  return ended
}
