// Lists names from answers: one row for each (endpoint, name), with its addresses and the end of each TTL. A name can have thousands of
// addresses, so the list pauses inside a row too. During a pause, rows of the tables can be reused for other names, so each row is
// checked before it is shown.

import { endpointId } from '../../core/ids.ts'
import { formatAddress } from '../../core/ip.ts'
import { EVERY_ROW, hasName, hasPrefix, type RowFilter } from '../row-filter.ts'
import type { NameShape } from '../document/shapes.ts'
import type { AdminState } from '../state.ts'
import { formatTime, ROWS_PER_PAUSE, type Rows } from './rows.ts'

const SECOND_MS = 1000

type Addresses = NameShape['addresses'][number][]

export function* nameRows(state: AdminState, filter = EVERY_ROW): Rows<NameShape> {
  const { names } = state.core.names
  for (let row = 1; row <= names.slots.high; row++) {
    if (row % ROWS_PER_PAUSE === 0) yield undefined
    if (names.isUsed(row) && hasName(state, filter, row)) yield* rowsOfName(state, filter, row)
  }
}

function* rowsOfName(state: AdminState, filter: RowFilter, row: number): Rows<NameShape> {
  const { core } = state
  const { names, mappings } = core.names
  const name = names.format(row)
  const selectors = core.labelSets.format(names.labels[row]!).map((text) => text.slice(5))
  const mappingRows: number[] = []
  for (let m = names.firstMapping[row]!; m !== 0; m = mappings.nextOfName[m]!) mappingRows.push(m)
  const byEndpoint = new Map<number, Addresses>()
  for (const [i, mapping] of mappingRows.entries()) {
    if (i % ROWS_PER_PAUSE === ROWS_PER_PAUSE - 1) yield undefined
    if (mappings.name[mapping] !== row) continue
    if (hasPrefix(state, filter, mappings.prefix[mapping]!)) addMapping(state, mapping, byEndpoint)
  }
  for (const [endpoint, addresses] of byEndpoint) {
    if (filter.endpoint !== undefined && filter.endpoint.id !== endpoint) continue
    yield { name, endpoint: endpointName(state, endpoint), selectors, addresses }
  }
}

function addMapping(state: AdminState, mapping: number, byEndpoint: Map<number, Addresses>): void {
  const { core, clock } = state
  const { mappings, entries } = core.names
  const { prefixes } = core.ipcache
  const prefix = mappings.prefix[mapping]!
  const address = formatAddress(prefixes.family(prefix), prefixes.octets, prefix * 16)
  const wallAtZero = clock.wall() - clock.now()
  for (
    let entry = mappings.firstEntry[mapping]!;
    entry !== 0;
    entry = entries.nextOfMapping[entry]!
  ) {
    const shown = {
      address,
      expires: formatTime(wallAtZero + entries.liveUntil[entry]! * SECOND_MS),
      state: core.names.stateOf(entry),
    }
    const known = byEndpoint.get(entries.endpoint[entry]!)
    if (known === undefined) byEndpoint.set(entries.endpoint[entry]!, [shown])
    else known.push(shown)
  }
}

function endpointName(state: AdminState, id: number): string {
  return state.endpoints.registry.get(endpointId(id))?.name ?? ''
}
