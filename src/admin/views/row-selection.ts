// Says which rows of the prefix table a filter selects. `get ipcache` shows these rows, and `get identities` shows their identities.

import type { Endpoint } from '../../endpoints/registry.ts'
import { OWNER_ENDPOINT, OWNER_NAME } from '../../ipcache/facts.ts'
import { hasName, hasPrefix, type RowFilter } from '../row-filter.ts'
import type { AdminState } from '../state.ts'

export function isSelected(state: AdminState, filter: RowFilter, row: number): boolean {
  return (
    hasPrefix(state, filter, row) &&
    (filter.pattern === undefined || ownersMatch(state, filter, row)) &&
    (filter.endpoint === undefined || isOf(state, filter.endpoint, row))
  )
}

/** True if the prefix is the address of a name that matches. */
function ownersMatch(state: AdminState, filter: RowFilter, row: number): boolean {
  const { prefixes, facts } = state.core.ipcache
  for (let fact = prefixes.firstFact[row]!; fact !== 0; fact = facts.next[fact]!) {
    if (facts.kind[fact] === OWNER_NAME && hasName(state, filter, facts.owner[fact]!)) return true
  }
  return false
}

/** True if the row applies to this endpoint only, is an address of the endpoint, or is an address that the endpoint learned. */
function isOf({ core }: AdminState, { id, name }: Endpoint, row: number): boolean {
  const { prefixes, facts } = core.ipcache
  const scope = prefixes.scoped.scope[row]!
  if (scope !== 0) return scope === id
  for (let fact = prefixes.firstFact[row]!; fact !== 0; fact = facts.next[fact]!) {
    const isEndpoint = facts.kind[fact] === OWNER_ENDPOINT
    if (isEndpoint && core.owners.text(facts.owner[fact]!) === name) return true
  }
  const { mappings, entries } = core.names
  for (let m = mappings.firstOfPrefix[row]!; m !== 0; m = mappings.nextOfPrefix[m]!) {
    if (entries.find(m, id) !== 0) return true
  }
  return false
}
