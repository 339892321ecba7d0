// After a start over maps that an earlier daemon left: what configuration gives is in force under new
// numbers, so every prefix, policy entry and endpoint that is not wanted any more goes. Additions came
// before; only now is anything taken away.

import type { EndpointId } from '../core/ids.ts'
import { PrefixBatch } from '../datapath/prefix-batch.ts'
import type { Changes, DatapathDump, PolicyEntry, PolicyKey } from '../datapath/datapath.ts'
import type { CoreState } from './core-state.ts'

/** `endpoint identity protocol port/bits`, the same for equal keys. */
export function policyKeyText(key: PolicyKey): string {
  return `${key.endpoint} ${key.identity} ${key.protocol} ${key.port}/${key.portBits}`
}

/**
 * Removes from the datapath what `restored` holds and the desired state does not, as it is when the datapath comes to
 * it: what is learned while another commit is under way stays.
 */
export function removeLeftovers(
  core: CoreState,
  restored: DatapathDump,
  endpoints: () => ReadonlySet<EndpointId>,
): void {
  core.committer.commitExtra(() => leftovers(core, restored, endpoints()))
}

function leftovers(
  core: CoreState,
  restored: DatapathDump,
  endpoints: ReadonlySet<EndpointId>,
): Changes {
  const wanted = new Set<string>()
  for (const entry of core.policyMaps.entries()) wanted.add(policyKeyText(entry))
  const stale = restored.policies.filter((entry) => !wanted.has(policyKeyText(entry)))
  return {
    policyUpserts: [],
    prefixUpserts: new PrefixBatch(1),
    endpointUpserts: [],
    endpointRemovals: restored.endpoints.map(({ id }) => id).filter((id) => !endpoints.has(id)),
    prefixRemovals: stalePrefixes(core, restored),
    policyRemovals: [...stale.filter(isNoDeny), ...stale.filter((entry) => !isNoDeny(entry))],
  }
}

function isNoDeny(entry: PolicyEntry): boolean {
  return entry.verdict !== 'deny'
}

function stalePrefixes(core: CoreState, restored: DatapathDump): PrefixBatch {
  const stale = new PrefixBatch()
  const { prefixes } = core.ipcache
  for (let i = 0; i < restored.prefixes.count; i++) {
    const { family, octets, length } = restored.prefixes.prefix(i)
    const scope = restored.prefixes.scope(i)
    const row = prefixes.findIn(scope, family, octets, 0, length)
    if (row !== 0 && prefixes.applied[row] !== 0) continue
    stale.add(
      family,
      octets,
      0,
      length,
      restored.prefixes.identity(i),
      restored.prefixes.addressClass(i),
      scope,
    )
  }
  return stale
}
