// matchName and matchPattern, as they stand in `toFQDNs` and in `rules.dns`.

import { isMapping, type FieldTable, type Reader } from '../../documents/source-document.ts'
import {
  parseMatchName,
  parseMatchPattern,
  type Pattern,
  type PatternResult,
} from '../match/pattern.ts'

const FQDN: FieldTable = new Map([
  ['matchName', true],
  ['matchPattern', true],
])

/** matchName, matchPattern or both; at least one. Undefined after a fault. */
export function readNames(reader: Reader): readonly Pattern[] | undefined {
  const only = readOnly(reader.value)
  if (only !== undefined) return [only]
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

/** The usual entry, a mapping with one of the two and nothing wrong in it; most of a long policy is such entries. */
function readOnly(value: unknown): Pattern | undefined {
  if (!isMapping(value)) return undefined
  const { matchName, matchPattern } = value
  for (const key in value) if (key !== 'matchName' && key !== 'matchPattern') return undefined
  if (typeof matchPattern === 'string' && matchName === undefined) {
    return patternOf(parseMatchPattern(matchPattern))
  }
  if (typeof matchName !== 'string' || matchPattern !== undefined) return undefined
  return patternOf(parseMatchName(matchName))
}

function patternOf(result: PatternResult): Pattern | undefined {
  return result.kind === 'ok' ? result.pattern : undefined
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
