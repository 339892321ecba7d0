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

/** Returns the fault of a word that belongs to no option, with the option that was probably meant. */
export function wordFault(word: string, given: readonly GivenOption[]): string {
  const found = `flows takes no argument, found ${JSON.stringify(word)}`
  if (word === 'not') {
    return `${found}: write --not in front of a filter, such as --not --verdict deny`
  }
  const key = FLOW_FILTER_KEYS.find((each) => each === word.replace(/^!/, ''))
  if (key === undefined) return found
  const not = word.startsWith('!') || given.at(-1)?.name === 'not' ? '--not ' : ''
  return `${found}: write ${not}--${key} VALUE`
}

/** Returns the filters as parameters of `/v1/flows`. */
export function toParameters(filters: readonly FilterText[]): URLSearchParams {
  const parameters = new URLSearchParams()
  for (const { key, not, value } of filters) parameters.append(not ? `not-${key}` : key, value)
  return parameters
}
