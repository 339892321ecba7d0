// matchName and matchPattern, as they stand in `toFQDNs` and in `rules.dns`.

import type { FieldTable, Reader } from '../core/source-document.ts'
import { parseMatchName, parseMatchPattern, type Pattern } from './pattern.ts'

const FQDN: FieldTable = new Map([
  ['matchName', true],
  ['matchPattern', true],
])

/** matchName, matchPattern or both; at least one. Undefined after a fault. */
export function readNames(reader: Reader): readonly Pattern[] | undefined {
  const fields = reader.fields(FQDN)
  if (fields === undefined) return undefined
  const name = fields.get('matchName')
  const pattern = fields.get('matchPattern')
  if (name === undefined && pattern === undefined) {
    return reader.fault('found neither matchName nor matchPattern, expected one')
  }
  const results = [readPattern(name, parseMatchName), readPattern(pattern, parseMatchPattern)]
  const patterns = results.filter((each) => each !== undefined)
  const wanted = [name, pattern].filter((each) => each !== undefined)
  return patterns.length === wanted.length ? patterns : undefined
}

function readPattern(
  reader: Reader | undefined,
  parse: typeof parseMatchName,
): Pattern | undefined {
  const text = reader?.text('a name')
  if (reader === undefined || text === undefined) return undefined
  const result = parse(text)
  return result.kind === 'ok' ? result.pattern : reader.fault(result.reason)
}
