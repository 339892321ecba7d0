// Searches for the page: from a name, an address, an identity or an endpoint to everything that is connected with it. The answer has names
// with their addresses, prefixes with their identities, selectors with their policies, and endpoints. The tables are read row by row with
// pauses, so a search never blocks the event loop.

import type { Clock } from '../../core/clock.ts'
import type {
  EndpointShape,
  IpcacheShape,
  NameShape,
  PolicyShape,
  SelectorShape,
} from '../document/shapes.ts'
import type { AdminState } from '../state.ts'
import { endpointRows } from '../views/endpoints.ts'
import { ipcacheRows } from '../views/ipcache.ts'
import { nameRows } from '../views/names.ts'
import { policyRows } from '../views/policies.ts'
import type { Rows } from '../views/rows.ts'
import { selectorRows } from '../views/selectors.ts'

export const SEARCH_MAX = 253
const NAMES_MAX = 50
const PREFIXES_MAX = 100
const OTHERS_MAX = 100
const SLICE_MS = 2

export interface Found {
  readonly names: readonly NameShape[]
  readonly prefixes: readonly IpcacheShape[]
  readonly selectors: readonly SelectorShape[]
  readonly policies: readonly PolicyShape[]
  readonly endpoints: readonly EndpointShape[]
  /** True if a list was cut at its bound. */
  readonly isCut: boolean
}

/** Searches for a text of 1..SEARCH_MAX characters. A name matches when it contains the text. `isWanted` false ends the search early. */
export async function explore(
  state: AdminState,
  given: string,
  isWanted: () => boolean,
): Promise<Found> {
  const text = given.trim().toLowerCase().replace(/\.$/, '')
  const pick = async <Row>(rows: Rows<Row>, max: number, fits: (row: Row) => boolean) =>
    await select(state.clock, rows, max, (row) => isWanted() && fits(row))
  const endpoint = state.endpoints.registry.byName(given.trim())?.name
  const identity = /^\d+$/.test(text) ? Number(text) : undefined

  const names = await pick(nameRows(state), NAMES_MAX, (row) => {
    if (endpoint !== undefined) return row.endpoint === endpoint
    return row.name.includes(text) || row.addresses.some(({ address }) => address === text)
  })
  const addresses = new Set(names.flatMap((row) => row.addresses.map((each) => each.address)))
  const prefixes = await pick(ipcacheRows(state), PREFIXES_MAX, (row) => {
    const [address = ''] = row.prefix.split('/')
    return (
      row.identity === identity || addresses.has(address) || row.prefix === text || address === text
    )
  })
  const identities = new Set(prefixes.map((row) => row.identity))
  const selectors = await pick(selectorRows(state), OTHERS_MAX, (row) => {
    return row.selector === text || row.identities.some((each) => identities.has(each))
  })
  const rules = new Set(selectors.flatMap((row) => row.policies))
  const users = new Set(names.map((row) => row.endpoint))
  const endpoints = await pick(endpointRows(state), OTHERS_MAX, (row) => {
    return (
      row.name === endpoint ||
      users.has(row.name) ||
      row.addresses.includes(text) ||
      row.policies.some((each) => rules.has(each))
    )
  })
  for (const { policies } of endpoints) for (const each of policies) rules.add(each)
  const policies = await pick(policyRows(state), OTHERS_MAX, (row) => {
    return rules.has(row.namespace === null ? row.name : `${row.namespace}/${row.name}`)
  })
  const isCut =
    names.length === NAMES_MAX ||
    prefixes.length === PREFIXES_MAX ||
    [selectors, policies, endpoints].some(({ length }) => length === OTHERS_MAX)
  return { names, prefixes, selectors, policies, endpoints, isCut }
}

async function select<Row>(
  clock: Clock,
  rows: Rows<Row>,
  max: number,
  fits: (row: Row) => boolean,
): Promise<readonly Row[]> {
  const found: Row[] = []
  let until = clock.now() + SLICE_MS
  for (const row of rows) {
    if (row !== undefined && fits(row) && found.push(row) >= max) break
    if (clock.now() < until) continue
    await new Promise<void>((resolve) => clock.soon(resolve))
    until = clock.now() + SLICE_MS
  }
  return found
}
