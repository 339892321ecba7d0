// Reads the parameters of `GET /v1/top`.

import { DURATION_FORM, parseDuration } from '../core/quantity.ts'
import type { Parsed } from './requests.ts'
import type { TopQuery } from './views/top.ts'

const WINDOW_MS = 60_000
const ROWS = 20
const ROWS_MAX = 1000
const PARAMETERS: readonly string[] = ['window', 'rows']

export function readTopQuery(query: URLSearchParams): Parsed<TopQuery> {
  const unknown = [...query.keys()].find((key) => !PARAMETERS.includes(key))
  if (unknown !== undefined) {
    return bad(`unknown parameter ${JSON.stringify(unknown)}; expected ${PARAMETERS.join(', ')}`)
  }
  const window = query.get('window')
  const windowMs = window === null ? WINDOW_MS : parseDuration(window)
  if (windowMs === undefined || windowMs === 0) return bad(`window: expected ${DURATION_FORM}`)
  const given = query.get('rows')
  const rows = given === null ? ROWS : /^\d{1,4}$/.test(given) ? Number(given) : ROWS_MAX + 1
  if (rows > ROWS_MAX) return bad(`rows: expected a number up to ${ROWS_MAX}`)
  return { kind: 'ok', value: { windowMs, rows } }
}

function bad(reason: string): { readonly kind: 'bad'; readonly reason: string } {
  return { kind: 'bad', reason }
}
