// Patterns and names from text, and the matches of an index or of the naive matcher.

import assert from 'node:assert/strict'
import { parseName } from '../../../src/core/name.ts'
import { IdList } from '../../../src/core/tables/id-list.ts'
import { PatternIndex } from '../../../src/policy/match/pattern-index.ts'
import { matches, parseMatchPattern, type Pattern } from '../../../src/policy/match/pattern.ts'

export function mkPattern(text: string): Pattern {
  const result = parseMatchPattern(text)
  assert.ok(result.kind === 'ok', `${text} is a pattern`)
  return result.pattern
}

export function mkName(text: string): Uint8Array {
  const result = parseName(text)
  assert.ok(result.kind === 'ok', `${text} is a name`)
  return result.name
}

/** An index whose ids are the positions in the list. */
export function mkIndex(patterns: readonly Pattern[]): PatternIndex {
  const index = new PatternIndex()
  patterns.forEach((pattern, id) => index.add(pattern, id))
  return index
}

/** Sorted ids of the match, from a buffer in which other octets surround the name. */
export function idsOf(index: PatternIndex, name: Uint8Array): number[] {
  const wire = new Uint8Array(name.length + 10).fill(0x61)
  wire.set(name, 5)
  const out = new IdList(1)
  out.push(-1)
  const count = index.match(wire, 5, out)
  assert.equal(out.items[0], -1, 'earlier items of the list stay')
  assert.equal(out.count, count + 1, 'the result is the number of ids appended')
  return [...out.items.subarray(1, out.count)].sort((a, b) => a - b)
}

export function naiveIds(patterns: ReadonlyMap<number, Pattern>, name: Uint8Array): number[] {
  return [...patterns].flatMap(([id, pattern]) => (matches(pattern, name) ? [id] : []))
}
