// Reads the filters of the lists of names, prefixes and identities: one endpoint, a pattern for names, and a prefix. A row must match every
// filter. An unknown parameter and an endpoint that does not exist are refused.

import { nearest } from '../core/did-you-mean.ts'
import { commonBits, parseMaskedPrefix, type Prefix } from '../core/ip.ts'
import type { Endpoint } from '../endpoints/registry.ts'
import { matches, parseMatchPattern, type Pattern } from '../policy/match/pattern.ts'
import { strangerIn } from './flows/flow-query.ts'
import type { Parsed } from './requests.ts'
import type { AdminState } from './state.ts'

export interface RowFilter {
  /** Undefined: every endpoint. */
  readonly endpoint: Endpoint | undefined
  readonly pattern: Pattern | undefined
  /** Rows of addresses must be inside the prefix, and rows of prefixes must overlap it. */
  readonly prefix: Prefix | undefined
}

export const EVERY_ROW: RowFilter = { endpoint: undefined, pattern: undefined, prefix: undefined }

const PARAMETERS: readonly string[] = ['endpoint', 'name', 'prefix']

export function readRowFilter(state: AdminState, query: URLSearchParams): Parsed<RowFilter> {
  if (query.size === 0) return { kind: 'ok', value: EVERY_ROW }
  const stray = [...query.keys()].find((key) => !PARAMETERS.includes(key))
  if (stray !== undefined) {
    const meant = nearest(stray, PARAMETERS) ?? PARAMETERS.join(', ')
    return bad(`unknown parameter ${JSON.stringify(stray)}; expected ${meant}`)
  }
  const twice = PARAMETERS.find((key) => query.getAll(key).length > 1)
  if (twice !== undefined) return bad(`${twice}: expected one value`)
  const [endpoint, name, address] = PARAMETERS.map((key) => query.get(key) ?? undefined)
  const stranger = endpoint === undefined ? undefined : strangerIn(state, [endpoint])
  if (stranger !== undefined) return bad(stranger)
  const pattern = name === undefined ? undefined : parseMatchPattern(name)
  if (pattern?.kind === 'bad') return bad(`name: ${pattern.reason}`)
  const prefix = address === undefined ? undefined : parseMaskedPrefix(address)
  if (prefix?.kind === 'bad') return bad(`prefix: ${prefix.reason}`)
  const { registry } = state.endpoints
  return {
    kind: 'ok',
    value: {
      endpoint: endpoint === undefined ? undefined : registry.byName(endpoint),
      pattern: pattern?.pattern,
      prefix: prefix?.prefix,
    },
  }
}

/** True if a name of the name table matches the pattern of the filter. */
export function hasName({ core }: AdminState, { pattern }: RowFilter, row: number): boolean {
  const { names } = core.names
  return pattern === undefined || matches(pattern, names.octetsOf(row), names.offsetOf(row))
}

/** True if a row of the prefix table overlaps the prefix of the filter. */
export function hasPrefix({ core }: AdminState, { prefix }: RowFilter, row: number): boolean {
  const { prefixes } = core.ipcache
  if (prefix === undefined) return true
  if (prefixes.family(row) !== prefix.family) return false
  const bits = Math.min(prefix.length, prefixes.lengths[row]!)
  return commonBits(prefixes.octets, row * 16, prefix.octets, 0, bits) === bits
}

function bad(reason: string): { readonly kind: 'bad'; readonly reason: string } {
  return { kind: 'bad', reason }
}
