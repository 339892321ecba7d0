// `readNames` reads entries with matchName and matchPattern, which are the items of `toFQDNs` and of `rules.dns`.

import { isMapping, type FieldTable, type Reader } from '../../documents/source-document.ts'
import {
  parseMatchName,
  parseMatchPattern,
  type Pattern,
  type PatternResult,
} from '../match/pattern.ts'

export const FQDN: FieldTable = new Map([
  ['matchName', true],
  ['matchPattern', true],
])

/** Returns the patterns of matchName, of matchPattern, or of both. Returns undefined after a fault, such as an entry with neither. */
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

/**
 * Reads the usual entry, a mapping with only matchName or only matchPattern, in a fast way, because a long policy has many of them.
 * Returns undefined for any other entry and for a faulty one.
 */
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
