// Documents of a plain YAML text, read by the quick reader: ten times as fast as the whole reader, with the same result
// (test/documents/quick-documents.test.ts). Values in the text have their place here; for any other place, as for a fault, the
// whole reader reads the text.

import type { Position } from '../core/errors.ts'
import { readQuickYaml, type QuickPlaces } from './quick-yaml.ts'
import type { SourceDocument, SourcePath } from './source-document.ts'
import {
  parseYaml,
  parseYamlDocument,
  TEXT_LENGTH_MAX,
  type YamlDocumentResult,
  type YamlResult,
} from './yaml-source.ts'

/** A line that ends a document; nothing else can stand there, not even inside a text. */
const MARK = /^---[ ]*$/m

/** As `parseYaml`. */
export function parseDocuments(text: string, file: string): YamlResult {
  return parseQuick(text, file) ?? parseYaml(text, file)
}

/** As `parseYamlDocument`: a text that must be one document. */
export function parseDocument(text: string, file: string): YamlDocumentResult {
  const { documents: [document, ...others] = [] } = parseQuick(text, file) ?? {}
  if (document === undefined || others.length > 0) return parseYamlDocument(text, file)
  return { document, faults: [] }
}

/** Undefined: some document is for the whole reader. */
function parseQuick(text: string, file: string): YamlResult | undefined {
  if (text.length > TEXT_LENGTH_MAX) return undefined
  const parts = partsOf(text)
  const documents: SourceDocument[] = []
  let whole: YamlResult | undefined
  for (const [number, part] of parts.entries()) {
    const places: QuickPlaces = new Map()
    const lines = new Lines(part.text)
    const value = readQuickYaml(part.text, places)
    if (value === undefined) return undefined
    const positionOf = (path: SourcePath, side: 'key' | 'value' = 'value'): Position => {
      const offset = side === 'key' ? undefined : offsetOf(value, path, places)
      if (offset !== undefined) return placeIn(part, lines, offset, file)
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

function placeIn({ line }: Part, lines: Lines, offset: number, file: string): Position {
  const at = lines.indexAt(offset)
  return { file, line: line + at, column: offset - lines.startOf(at) + 1 }
}

/** Where the lines of a text begin; found out when it is asked for first. */
class Lines {
  readonly #text: string
  #starts: readonly number[] | undefined

  constructor(text: string) {
    this.#text = text
  }

  startOf(index: number): number {
    return this.#all[index] ?? 0
  }

  /** The line, from 0 on, that the offset is in. */
  indexAt(offset: number): number {
    const starts = this.#all
    let [low, high] = [0, starts.length - 1]
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if ((starts[middle] ?? offset) <= offset) low = middle
      else high = middle - 1
    }
    return low
  }

  get #all(): readonly number[] {
    if (this.#starts !== undefined) return this.#starts
    const starts = [0]
    for (let at = this.#text.indexOf('\n'); at >= 0; at = this.#text.indexOf('\n', at + 1)) {
      starts.push(at + 1)
    }
    this.#starts = starts
    return starts
  }
}
