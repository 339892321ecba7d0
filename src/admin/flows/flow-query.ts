// Reads the parameters of `GET /v1/flows`. An unknown parameter and an endpoint that neither exists nor has flows in the ring are refused,
// because the answer would be other flows than the caller wants, or none.

import { nearest } from '../../core/did-you-mean.ts'
import { DURATION_FORM, parseDuration } from '../../core/quantity.ts'
import { FILTER_PARAMETERS, filterTexts, readFlowFilter } from './flow-filter.ts'
import type { FlowQuery } from './flow-stream.ts'
import type { Parsed } from '../requests.ts'
import type { AdminState } from '../state.ts'
import { noEndpoint } from '../unknown-endpoint.ts'

const PARAMETERS: readonly string[] = ['follow', 'last', 'since', ...FILTER_PARAMETERS]

export function readFlowQuery(state: AdminState, query: URLSearchParams): Parsed<FlowQuery> {
  const unknown = [...query.keys()].find((key) => !PARAMETERS.includes(key))
  if (unknown !== undefined) return bad(unknownParameter(unknown))
  const last = query.get('last')
  if (last !== null && !/^\d{1,9}$/.test(last))
    return bad('last: expected a number from 0 to 999999999')
  const since = query.get('since')
  const age = since === null ? undefined : parseDuration(since)
  if (since !== null && age === undefined) return bad(`since: expected ${DURATION_FORM}`)
  const filter = readFlowFilter(filterTexts(query))
  if (filter.kind === 'bad') return filter
  const { endpoints } = filter.value
  const stranger = strangerIn(state, endpoints, (name) => state.flows.former.isNamed(name))
  if (stranger !== undefined) return bad(stranger)
  return {
    kind: 'ok',
    value: {
      follow: query.get('follow') === '1',
      filter: filter.value,
      last: last === null ? undefined : Number(last),
      from: age === undefined ? 0 : state.clock.wall() - age,
    },
  }
}

/** Returns a text about the first name that no endpoint has. Undefined if every name belongs to an endpoint, or `isFormer`. */
export function strangerIn(
  state: Pick<AdminState, 'endpoints'>,
  names: readonly string[],
  isFormer: (name: string) => boolean = () => false,
): string | undefined {
  const { registry } = state.endpoints
  const stranger = names.find((name) => registry.byName(name) === undefined && !isFormer(name))
  return stranger === undefined ? undefined : noEndpoint(state, stranger)
}

function unknownParameter(name: string): string {
  const meant = nearest(name, PARAMETERS)
  const hint = meant === undefined ? `expected ${PARAMETERS.join(', ')}` : `did you mean ${meant}?`
  return `unknown parameter ${JSON.stringify(name)}; ${hint}`
}

function bad(reason: string): { readonly kind: 'bad'; readonly reason: string } {
  return { kind: 'bad', reason }
}
