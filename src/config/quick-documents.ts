// Documents of a YAML text that are plainly written, read by the quick reader: some ten times as fast as by the one that knows
// all of YAML, and the same (test/config/quick-documents.test.ts). Places are known for what stands in the text; whoever
// wants to know the place of anything else, as for a fault, gets it from the whole reader, which then reads it all.

import type { Position } from '../core/errors.ts'
import { readQuickYaml, type QuickPlaces } from '../core/quick-yaml.ts'
import type { SourceDocument, SourcePath } from '../core/source-document.ts'
import { parseYaml, TEXT_LENGTH_MAX, type YamlResult } from './yaml-source.ts'

/** A line that ends a document; nothing else can stand there, not even inside a text. */
const MARK = /^---[ ]*$/m

/** As `parseYaml`. */
export function parseDocuments(text: string, file: string): YamlResult {
  return parseQuick(text, file) ?? parseYaml(text, file)
}

/** Undefined: some document is for the whole reader. */
function parseQuick(text: string, file: string): YamlResult | undefined {
  if (text.length > TEXT_LENGTH_MAX) return undefined
  const parts = partsOf(text)
  const documents: SourceDocument[] = []
  let whole: YamlResult | undefined
  for (const [number, part] of parts.entries()) {
    const places: QuickPlaces = new Map()
    const value = readQuickYaml(part.text, places)
    if (value === undefined) return undefined
    const positionOf = (path: SourcePath, side: 'key' | 'value' = 'value'): Position => {
      const offset = side === 'key' ? undefined : offsetOf(value, path, places)
      if (offset !== undefined) return placeIn(part, offset, file)
      whole ??= parseYaml(text, file)
      const start = { file, line: part.line, column: 1 }
      return whole.documents[number]?.positionOf(path, side) ?? start
    }
    documents.push({ value, positionOf })
  }
  return documents.length === 0 ? undefined : { documents, faults: [] }
}

interface Part {
  readonly text: string
  /** Number of its first line. */
  readonly line: number
}

/** What stands between the marks; before the first one there need not be anything. */
function partsOf(text: string): readonly Part[] {
  const parts: Part[] = []
  let [rest, line] = [text, 1]
  for (let found = MARK.exec(rest); found !== null; found = MARK.exec(rest)) {
    const before = rest.slice(0, found.index)
    if (before !== '' || line > 1) parts.push({ text: before, line })
    line += before.split('\n').length
    rest = rest.slice(found.index + found[0].length + 1)
  }
  return [...parts, { text: rest, line }]
}

/** Where in its part the value at a path begins; undefined when that is not known here. */
function offsetOf(root: unknown, path: SourcePath, places: QuickPlaces): number | undefined {
  let value = root
  let offset = places.get(root)?.start
  for (const step of path) {
    const place = typeof step === 'number' ? step : Object.keys(Object(value)).indexOf(step)
    offset = places.get(value)?.inside[place]
    if (offset === undefined) return undefined
    value = Reflect.get(Object(value), step)
  }
  return offset
}

function placeIn({ text, line }: Part, offset: number, file: string): Position {
  let [lines, last] = [0, -1]
  for (let at = text.indexOf('\n'); at >= 0 && at < offset; at = text.indexOf('\n', at + 1)) {
    lines++
    last = at
  }
  return { file, line: line + lines, column: offset - last }
}
