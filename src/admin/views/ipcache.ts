// The IPCache: every prefix that has a fact, with its identity, labels and owners. The view of a single endpoint of an address is a
// row of its own that names the endpoint.

import { OWNER_KINDS, OWNER_NAME } from '../../ipcache/facts.ts'
import type { IpcacheShape } from '../shapes.ts'
import type { AdminState } from '../state.ts'
import { ROWS_PER_PAUSE, type Rows } from './rows.ts'

export function* ipcacheRows(state: AdminState): Rows<IpcacheShape> {
  const { prefixes } = state.core.ipcache
  for (let row = 1; row <= prefixes.slots.high; row++) {
    if (row % ROWS_PER_PAUSE === 0) yield undefined
    if (prefixes.wanted[row] !== 0) yield ipcacheRow(state, row)
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
