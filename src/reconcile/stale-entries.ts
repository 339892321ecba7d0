// This file lists stale entries: those that an earlier daemon left in the datapath and that nothing wants now. A restart removes them.

import type { EndpointId, Identity } from '../core/ids.ts'
import { PrefixBatch } from '../datapath/prefix-batch.ts'
import type { Changes, DatapathDump, PolicyEntry, PolicyKey } from '../datapath/entries.ts'
import type { CoreState } from '../enforcement/core-state.ts'

/** Formats a key as `endpoint identity protocol port/bits`. Equal keys have equal texts. */
export function policyKeyText(key: PolicyKey): string {
  return `${key.endpoint} ${key.identity} ${key.protocol} ${key.port}/${key.portBits}`
}

/**
 * Returns the removals of endpoints that are gone and of policy entries that are not wanted. `spared`: identities of addresses that are
 * kept from before the restart. Policy entries of these identities stay while their endpoint exists.
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

/** Returns the removals of the listed entries of `batch`. */
export function prefixRemovals(batch: PrefixBatch, entries: readonly number[]): Changes {
  const stale = new PrefixBatch(entries.length + 1)
  for (const entry of entries) stale.addFrom(batch, entry)
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
