// Identities in use. The host's is reserved and not counted by the allocator; it is listed with the prefixes
// that carry it, so that every number of `get ipcache` is found here.

import { HOST } from '../../identity/reserved.ts'
import type { IdentityShape } from '../shapes.ts'
import type { AdminState } from '../state.ts'
import type { Rows } from './rows.ts'

export function* identityRows({ core }: AdminState): Rows<IdentityShape> {
  const { wanted, slots } = core.ipcache.prefixes
  let hosts = 0
  for (let row = 1; row <= slots.high; row++) if (wanted[row] === HOST) hosts++
  if (hosts > 0) {
    yield { id: HOST, labels: ['reserved:host'], references: hosts, preallocated: false }
  }
  for (const { id, set, references, preallocated } of core.allocator.views()) {
    yield { id, labels: core.labelSets.format(set), references, preallocated }
  }
}
