// `parseDocuments` and `parseDocument` read a plain YAML text with the quick reader (quick-yaml.ts). It is ten times as fast as the full
// reader (yaml-source.ts), with the same result (test/documents/quick-documents.test.ts). The quick reader knows where values begin. For
// any other position, such as that of a key, the full reader reads the text. The full reader also reads texts that are not plain.

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

/** A line that ends a document. No text in a document can contain it. */
const MARK = /^---[ ]*$/m

/** Reads all documents of a text, like `parseYaml`. */
export function parseDocuments(text: string, file: string): YamlResult {
  return parseQuick(text, file) ?? parseYaml(text, file)
}

/** Reads a text that must be one document, like `parseYamlDocument`. */
export function parseDocument(text: string, file: string): YamlDocumentResult {
  const { documents: [document, ...others] = [] } = parseQuick(text, file) ?? {}
  if (document === undefined || others.length > 0) return parseYamlDocument(text, file)
  return { document, faults: [] }
}

/** Reads all documents with the quick reader. Returns undefined if a document needs the full reader. */
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
  /** The number of the first line of the part. */
  readonly line: number
}

/** Returns the parts between the marks. Leaves out an empty part before the first mark. */
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

/** Returns the offset in the part where the value at a path begins; undefined if the quick reader does not know it. */
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

/** Finds the lines of a text. It computes their offsets at the first use. */
class Lines {
  readonly #text: string
  #starts: readonly number[] | undefined

  constructor(text: string) {
    this.#text = text
  }

  startOf(index: number): number {
    return this.#all[index] ?? 0
  }

  /** Returns the index (from 0) of the line that contains the offset. */
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
