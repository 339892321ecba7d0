// Stale entries: the datapath has them from an earlier daemon, and the desired state does not want them. A restart and a
// repair remove them.

import type { EndpointId, Identity } from '../core/ids.ts'
import { PrefixBatch } from '../datapath/prefix-batch.ts'
import type { Changes, DatapathDump, PolicyEntry, PolicyKey } from '../datapath/entries.ts'
import type { CoreState } from '../enforcement/core-state.ts'

/** `endpoint identity protocol port/bits`; equal keys have equal texts. */
export function policyKeyText(key: PolicyKey): string {
  return `${key.endpoint} ${key.identity} ${key.protocol} ${key.port}/${key.portBits}`
}

/**
 * Removals of endpoints that are gone and of policy entries that are not wanted. `spared`: identities that kept addresses
 * still carry. Their policy entries stay while the endpoint exists.
 */
export function stalePolicies(
  core: CoreState,
  restored: DatapathDump,
  endpoints: ReadonlySet<EndpointId>,
  spared: ReadonlySet<Identity>,
): Changes {
  const wanted = new Set<string>()
  for (const entry of core.policyMaps.entries()) wanted.add(policyKeyText(entry))
  const stale = restored.policies.filter((entry) => {
    if (endpoints.has(entry.endpoint) && spared.has(entry.identity)) return false
    return !wanted.has(policyKeyText(entry))
  })
  return {
    ...removals(),
    endpointRemovals: restored.endpoints.map(({ id }) => id).filter((id) => !endpoints.has(id)),
    policyRemovals: [...stale.filter(isNoDeny), ...stale.filter((entry) => !isNoDeny(entry))],
  }
}

/** Removals of these entries of `batch`. */
export function prefixRemovals(batch: PrefixBatch, entries: readonly number[]): Changes {
  const stale = new PrefixBatch(entries.length + 1)
  for (const entry of entries) {
    stale.add(
      batch.family(entry),
      batch.octets(entry),
      0,
      batch.length(entry),
      batch.identity(entry),
      batch.addressClass(entry),
      batch.scope(entry),
    )
  }
  return { ...removals(), prefixRemovals: stale }
}

function removals(): Changes {
  return {
    policyUpserts: [],
    prefixUpserts: new PrefixBatch(1),
    endpointUpserts: [],
    endpointRemovals: [],
    prefixRemovals: new PrefixBatch(1),
    policyRemovals: [],
  }
}

function isNoDeny(entry: PolicyEntry): boolean {
  return entry.verdict !== 'deny'
}
