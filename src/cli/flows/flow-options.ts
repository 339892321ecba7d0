// Reads the filters of `namegate flows` from its options. `--not` in front of a filter turns it around. The daemon filters the flows of its
// ring by these texts.

import { FLOW_FILTER_KEYS, type FilterText } from '../../admin/flows/flow-filter.ts'
import type { GivenOption } from '../command.ts'

/** Returns the filters in the order of the options. If `--not` has no filter after it, returns the fault as text. */
export function filtersIn(given: readonly GivenOption[]): readonly FilterText[] | string {
  const filters: FilterText[] = []
  let not = false
  for (const { name, value } of given) {
    const key = FLOW_FILTER_KEYS.find((each) => each === name)
    if (not && key === undefined) return `--not must be in front of a filter, found --${name}`
    if (key !== undefined && value !== undefined) filters.push({ key, not, value })
    not = name === 'not'
  }
  return not ? '--not must be in front of a filter' : filters
}

/** Returns the filters as parameters of `/v1/flows`. */
export function toParameters(filters: readonly FilterText[]): URLSearchParams {
  const parameters = new URLSearchParams()
  for (const { key, not, value } of filters) parameters.append(not ? `not-${key}` : key, value)
  return parameters
}
