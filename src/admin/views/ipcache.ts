// Lists prefixes and identities. Every prefix that has a fact has a row with its identity, labels and owners. If one endpoint has its own
// view of a prefix, the prefix has a second row that names the endpoint.

import { HOST } from '../../identity/reserved.ts'
import { OWNER_KINDS, OWNER_NAME } from '../../ipcache/facts.ts'
import { EVERY_ROW } from '../row-filter.ts'
import type { IdentityShape, IpcacheShape } from '../document/shapes.ts'
import type { AdminState } from '../state.ts'
import { isSelected } from './row-selection.ts'
import { ROWS_PER_PAUSE, type Rows } from './rows.ts'

export function* ipcacheRows(state: AdminState, filter = EVERY_ROW): Rows<IpcacheShape> {
  const { prefixes } = state.core.ipcache
  for (let row = 1; row <= prefixes.slots.high; row++) {
    if (row % ROWS_PER_PAUSE === 0) yield undefined
    if (prefixes.wanted[row] !== 0 && isSelected(state, filter, row)) yield ipcacheRow(state, row)
  }
}

function ipcacheRow({ core, endpoints }: AdminState, row: number): IpcacheShape {
  const { ipcache, labelSets } = core
  const { prefixes, facts } = ipcache
  const owners: IpcacheShape['owners'][number][] = []
  for (let fact = prefixes.firstFact[row]!; fact !== 0; fact = facts.next[fact]!) {
    const kind = facts.kind[fact]!
    const owner = facts.owner[fact]!
    owners.push({
      kind: OWNER_KINDS[kind] ?? '',
      name: kind === OWNER_NAME ? core.names.names.format(owner) : core.owners.text(owner),
      labels: labelSets.format(facts.set[fact]!),
    })
  }
  const scope = prefixes.scoped.scope[row]!
  return {
    prefix: prefixes.format(row),
    identity: prefixes.wanted[row]!,
    labels: labelSets.format(prefixes.derived[row]!),
    owners: owners.sort(byKindAndName),
    ...(scope === 0 ? {} : { endpoint: endpoints.registry.byNumber(scope)?.name ?? '' }),
  }
}

function byKindAndName(
  a: { readonly kind: string; readonly name: string },
  b: { readonly kind: string; readonly name: string },
): number {
  if (a.kind !== b.kind) return a.kind < b.kind ? -1 : 1
  if (a.name === b.name) return 0
  return a.name < b.name ? -1 : 1
}

/**
 * Identities in use. The host's identity is reserved, and the allocator does not count it. The host's identity has a row if any prefix has
 * this identity. So every identity of `get ipcache` is in this list too. A filter selects the identities of the rows of `get ipcache` that it
 * selects.
 */
export function* identityRows(state: AdminState, filter = EVERY_ROW): Rows<IdentityShape> {
  const { core } = state
  const { wanted, slots } = core.ipcache.prefixes
  const selected = filter === EVERY_ROW ? undefined : new Set<number>()
  let hosts = 0
  for (let row = 1; row <= slots.high; row++) {
    if (selected !== undefined && row % ROWS_PER_PAUSE === 0) yield undefined
    if (wanted[row] === HOST) hosts++
    if (selected !== undefined && wanted[row] !== 0 && isSelected(state, filter, row)) {
      selected.add(wanted[row]!)
    }
  }
  if (hosts > 0 && selected?.has(HOST) !== false) {
    yield { id: HOST, labels: ['reserved:host'], references: hosts, preallocated: false }
  }
  for (const { id, set, references, preallocated } of core.allocator.views()) {
    if (selected?.has(id) === false) continue
    yield { id, labels: core.labelSets.format(set), references, preallocated }
  }
}
