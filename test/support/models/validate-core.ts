// Compares every count of a node's core with the items that it counts.

import type { CoreState } from '../../../src/enforcement/core-state.ts'
import { validateIpCache } from '../../../src/ipcache/validate.ts'

/** Throws at the first count that is wrong. */
export function validateCore(core: CoreState): void {
  const { ipcache, labelSets, allocator, names, selectorLabels, scopes } = core
  const sets = [...selectorLabels.heldSets(), ...scopes.heldSets()]
  const rows: number[] = []
  for (let name = 1; name <= names.names.slots.high; name++) {
    if (names.names.isUsed(name) && names.names.labels[name] !== 0)
      sets.push(names.names.labels[name] ?? 0)
  }
  for (let row = 1; row <= names.mappings.slots.high; row++) {
    if (names.mappings.isUsed(row)) rows.push(names.mappings.prefix[row] ?? 0)
  }
  validateIpCache(ipcache, labelSets, allocator, { labelSets: sets, rows })
}
