// External resources: labels on addresses that no endpoint has.

import type { ResourceShape } from '../shapes.ts'
import type { AdminState } from '../state.ts'
import { formatAddressOrPrefix } from './endpoints.ts'
import { formatTime } from './rows.ts'

export function* resourceRows(state: AdminState): Iterable<ResourceShape> {
  for (const { name, addresses, labels, origin, expires } of state.resources()) {
    yield {
      name,
      addresses: addresses.map(formatAddressOrPrefix),
      labels: [...labels].sort(),
      origin,
      expires: expires === undefined ? null : formatTime(expires),
    }
  }
}
