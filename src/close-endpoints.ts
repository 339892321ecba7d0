// `namegate datapath close`: the endpoints of a config are fenced before there is a daemon. They may do DNS only,
// as long as nobody has loaded policy for them; the daemon that starts later takes them over as they are. For the
// first step of a pod or a unit, so that no workload is faster than its policy.

import { readFileSync } from 'node:fs'
import type { Config, PlacedPath } from './config/config.ts'
import { findPolicyFiles } from './config/files.ts'
import { systemClock } from './core/clock.ts'
import { InvalidInputError, UnavailableError } from './core/errors.ts'
import { endpointId, generation } from './core/ids.ts'
import { Locks } from './locks.ts'
import type { CommitResult, Datapath, DatapathDump, EndpointEntry } from './datapath/datapath.ts'
import { PrefixBatch } from './datapath/prefix-batch.ts'
import { parseEndpoints, type EndpointRecord } from './endpoints/file.ts'
import { openDatapath } from './open-datapath.ts'
import { withInterfaceAddresses } from './sources/interface-addresses.ts'
import { SILENT } from './telemetry/silent.ts'

export interface Closed {
  /** Names of those that are closed now. */
  readonly closed: readonly string[]
  /** Names of those that were fenced before, and stay as they were. */
  readonly kept: readonly string[]
}

/** Throws InvalidInputError for a faulty endpoints file, UnavailableError when there is a daemon or no privilege. */
export async function closeEndpoints(config: Config): Promise<Closed> {
  if (config.datapath.kind === 'memory') {
    throw new UnavailableError(
      'Cannot close endpoints: datapath.kind memory enforces nothing: use ebpf or nftables',
    )
  }
  const records = readEndpoints(config.endpoints.files)
  const locks = new Locks(config, SILENT, false)
  const datapath = openDatapath(config, systemClock)
  try {
    const restored = datapath.start()
    const known = new Set(restored.endpoints.map(({ hookKey }) => hookKey))
    const isKept = ({ hook }: EndpointRecord): boolean => known.has(datapath.hookKey(hook) ?? '')
    const kept = records.filter(isKept)
    const missing = records.filter((record) => !kept.includes(record))
    const failures = await commit(datapath, toEntries(missing, restored))
    const [failure] = failures
    if (failure !== undefined) {
      throw new UnavailableError(`Cannot close endpoints: the kernel refuses: ${failure.code}`)
    }
    datapath.refresh()
    const names = (of: readonly EndpointRecord[]): readonly string[] => of.map(({ name }) => name)
    return { closed: names(missing), kept: names(kept) }
  } finally {
    datapath.stop({ leaveEnforcing: true })
    locks.release()
  }
}

/** Those that something can fence. */
function readEndpoints(files: readonly PlacedPath[]): readonly EndpointRecord[] {
  const read = files.flatMap(({ path }) =>
    findPolicyFiles(path).files.map((file) =>
      withInterfaceAddresses(parseEndpoints(readFileSync(file, 'utf8'), file)),
    ),
  )
  const faults = read.flatMap((each) => each.faults)
  if (faults.length > 0) throw new InvalidInputError(faults)
  return read.flatMap(({ items }) => items).filter(({ hook }) => hook.kind !== 'none')
}

function toEntries(
  records: readonly EndpointRecord[],
  restored: DatapathDump,
): readonly EndpointEntry[] {
  const ids = [
    ...restored.endpoints.map(({ id }) => id),
    ...restored.policies.map((each) => each.endpoint),
  ]
  const highest = Math.max(0, ...ids)
  return records.map(({ hook, audit, addresses: sources }, i) => {
    const id = endpointId(highest + 1 + i)
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
