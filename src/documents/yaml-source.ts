// `parseYaml` reads YAML text into documents whose values know their positions (documents/source-document.ts). It uses the `yaml` package
// with the core schema of YAML 1.2: strings, numbers, booleans and null. Against hostile text it bounds the length, the depth, and the
// number of values that aliases stand for. Merge keys, own tags and keys that are no scalars are faults. It never throws, whatever the
// text. Cost: one pass of the parser and one over its tree.

import {
  Composer,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  Parser,
  type Alias,
  type CST,
  type Document,
  type Pair,
  type Scalar,
  type YAMLMap,
} from 'yaml'
import type { Fault, Position } from '../core/errors.ts'
import { describeValue, type SourceDocument, type SourcePath } from './source-document.ts'

/** The longest text that the reader takes, in UTF-16 units. A kind of file can have a lower bound of its own. */
export const TEXT_LENGTH_MAX = 64 * 2 ** 20
/** How deep lists and mappings can be nested. */
export const DEPTH_MAX = 64
/** How many values all aliases of a document can stand for together. */
export const ALIAS_VALUES_MAX = 10_000

export interface YamlResult {
  /** The documents without faults, in order. An empty document has the value null. */
  readonly documents: readonly SourceDocument[]
  readonly faults: readonly Fault[]
}

const TOO_DEEP = `found lists or mappings nested deeper than ${DEPTH_MAX}`

/** Reads every document of a text. */
export function parseYaml(text: string, file: string): YamlResult {
  const lines = new LineCounter()
  const faultAt = (start: number, message: string): YamlResult => {
    const { line, col } = lines.linePos(start)
    const position = { file, line: Math.max(1, line), column: Math.max(1, col) }
    return { documents: [], faults: [{ position, message }] }
  }
  if (text.length > TEXT_LENGTH_MAX) {
    return faultAt(0, `found ${text.length} characters, expected at most ${TEXT_LENGTH_MAX}`)
  }
  const tokens = [...new Parser(lines.addNewLine).parse(text)]
  const deep = tokens.map(tooDeepAt).find((start) => start !== undefined)
  if (deep !== undefined) return faultAt(deep, TOO_DEEP)
  const composer = new Composer({ uniqueKeys: false, version: '1.2', merge: false })
  const documents: SourceDocument[] = []
  const faults: Fault[] = []
  let count = 0
  for (const doc of composer.compose(tokens, false, text.length)) {
    const conversion = new Conversion(doc, lines, file)
    const document = conversion.run()
    faults.push(...conversion.faults)
    if (conversion.faults.length === 0) documents.push(document)
    count++
  }
  const [error] = composer.streamInfo().errors
  if (count === 0 && error !== undefined) return faultAt(error.pos[0], wordsOf(error.message))
  if (count === 0) documents.push({ value: null, positionOf: () => ({ file, line: 1, column: 1 }) })
  return { documents, faults }
}

/**
 * Returns the offset of a list or mapping that is nested too deeply; undefined if there is none. It searches the tokens of the parser
 * without recursion. The composer, which makes documents of the tokens, uses recursion and would run out of stack.
 */
function tooDeepAt(token: CST.Token): number | undefined {
  const stack: { readonly token: CST.Token; readonly depth: number }[] = [{ token, depth: 0 }]
  for (let top = stack.pop(); top !== undefined; top = stack.pop()) {
    const { token: from, depth } = top
    if (depth > DEPTH_MAX) return from.offset
    if (from.type === 'document' && from.value !== undefined) {
      stack.push({ token: from.value, depth })
    }
    if (!('items' in from)) continue
    for (const { key, value } of from.items) {
      if (key !== null && key !== undefined) stack.push({ token: key, depth: depth + 1 })
      if (value !== undefined) stack.push({ token: value, depth: depth + 1 })
    }
  }
  return undefined
}

/** Texts of the `yaml` package, and ours. */
const WORDS: readonly (readonly [begin: string, words: string])[] = [
  ['Tabs are not allowed', 'found a tab, expected spaces'],
  [
    'Implicit keys need to be on a single line',
    'found text over several lines in place of a key, expected a blank after its colon',
  ],
  [
    'All mapping items must start at the same column',
    'found a key in another column, expected the same indentation as the keys before it',
  ],
  [
    'Flow sequence in block collection',
    'found no ] at the end of a list that begins with [, or a line of it without indentation',
  ],
  [
    'Flow map in block collection',
    'found no } at the end of a mapping that begins with {, or a line of it without indentation',
  ],
  ['Missing closing "quote', 'found no " at the end of a text that begins with it'],
  ["Missing closing 'quote", "found no ' at the end of a text that begins with it"],
]

/** Returns our words for a message of the package; its first line where there are none. */
function wordsOf(message: string): string {
  const known = WORDS.find(([begin]) => message.startsWith(begin))
  return known?.[1] ?? message.split('\n')[0] ?? message
}

/** The result for a text of one document. The document is undefined if there are faults. */
export interface YamlDocumentResult {
  readonly document: SourceDocument | undefined
  readonly faults: readonly Fault[]
}

/** Reads a text that must be one document. */
export function parseYamlDocument(text: string, file: string): YamlDocumentResult {
  const { documents, faults } = parseYaml(text, file)
  const second = documents[1]
  if (faults.length > 0 || second === undefined) return { document: documents[0], faults }
  const message = 'found a second document (---), expected one'
  return { document: undefined, faults: [{ position: second.positionOf([]), message }] }
}

/** Converts the parser's tree of one document to plain values. */
class Conversion {
  readonly faults: Fault[] = []
  readonly #doc: Document.Parsed
  readonly #lines: LineCounter
  readonly #file: string
  readonly #anchors = new Map<string, unknown>()
  readonly #targets = new Map<Alias, unknown>()
  #aliasDepth = 0
  #aliasValues = 0

  constructor(doc: Document.Parsed, lines: LineCounter, file: string) {
    this.#doc = doc
    this.#lines = lines
    this.#file = file
  }

  run(): SourceDocument {
    const { errors, warnings, directives } = this.#doc
    for (const { pos, message } of [...errors, ...warnings]) {
      this.#fault(pos[0], wordsOf(message))
    }
    if (directives.yaml.version !== '1.2') {
      this.#fault(0, `found YAML ${directives.yaml.version}, expected YAML 1.2`)
    }
    const value = this.faults.length > 0 ? null : this.#convert(this.#doc.contents, 0)
    return { value, positionOf: (path, part) => this.#positionOf(path, part ?? 'value') }
  }

  #convert(node: unknown, depth: number): unknown {
    if (this.#aliasDepth > 0 && ++this.#aliasValues > ALIAS_VALUES_MAX) {
      if (this.#aliasValues > ALIAS_VALUES_MAX + 1) return null
      return this.#fault(startOf(node), `found aliases for more than ${ALIAS_VALUES_MAX} values`)
    }
    if (depth > DEPTH_MAX) {
      return this.#fault(startOf(node), TOO_DEEP)
    }
    if (isAlias(node)) return this.#convertAlias(node, depth)
    if (isNode(node) && node.anchor !== undefined && this.#aliasDepth === 0) {
      this.#anchors.set(node.anchor, node)
    }
    if (isSeq(node)) return node.items.map((item) => this.#convert(item, depth + 1))
    if (isMap(node)) return this.#convertMap(node, depth)
    if (!isScalar(node)) return null
    return typeof node.value === 'bigint' ? Number(node.value) : node.value
  }

  /** Converts an alias. It stands for the last anchor of its name before the alias. */
  #convertAlias(alias: Alias, depth: number): unknown {
    const target = this.#targets.get(alias) ?? this.#anchors.get(alias.source)
    if (target === undefined) {
      const advice = 'write a text that begins with * in quotes'
      return this.#fault(
        startOf(alias),
        `found the alias *${alias.source}, but no such anchor: ${advice}`,
      )
    }
    this.#targets.set(alias, target)
    this.#aliasDepth++
    const value = this.#convert(target, depth + 1)
    this.#aliasDepth--
    return value
  }

  #convertMap(map: YAMLMap, depth: number): unknown {
    const values = new Map<string, unknown>()
    const starts = new Map<string, number>()
    for (const pair of map.items) {
      const key = this.#keyOf(pair)
      if (key === undefined) continue
      const before = starts.get(key)
      if (before !== undefined) {
        const { line } = this.#place(before)
        this.#fault(
          startOf(pair.key),
          `found the key ${describeValue(key)} twice, first on line ${line}`,
        )
        continue
      }
      starts.set(key, startOf(pair.key))
      values.set(key, this.#convert(pair.value, depth + 1))
    }
    return toMapping(values)
  }

  /** Returns a key as a text. A number or boolean stays as it is written. */
  #keyOf(pair: Pair): string | undefined {
    const text = keyText(pair)
    if (text === undefined) {
      return this.#fault(startOf(pair.key), 'found a key that is no text, expected a text')
    }
    if (text !== '<<') return text
    return this.#fault(startOf(pair.key), 'found a merge key (<<): not supported')
  }

  #positionOf(path: SourcePath, part: 'key' | 'value'): Position {
    let node: unknown = this.#doc.contents
    let start = startOf(node)
    for (const [i, step] of path.entries()) {
      if (isAlias(node)) node = this.#targets.get(node)
      if (isMap(node)) {
        const pair = node.items.find((each) => keyText(each) === step)
        if (pair === undefined) break
        node = pair.value
        const atKey = isBlank(node) || (part === 'key' && i === path.length - 1)
        start = startOf(atKey ? pair.key : node)
      } else if (isSeq(node) && typeof step === 'number' && step < node.items.length) {
        node = node.items[step]
        start = startOf(node)
      } else {
        break
      }
    }
    return this.#place(start)
  }

  #fault(start: number, message: string): undefined {
    this.faults.push({ position: this.#place(start), message })
    return undefined
  }

  #place(start: number): Position {
    const { line, col } = this.#lines.linePos(start)
    return { file: this.#file, line: Math.max(1, line), column: Math.max(1, col) }
  }
}

/** Makes a mapping without a prototype, so that no key can be confused with an inherited property. */
function toMapping(values: ReadonlyMap<string, unknown>): unknown {
  return Object.setPrototypeOf(Object.fromEntries(values), null)
}

/** Returns the offset of a node in the text; 0 for a node that is not in the text. */
function startOf(node: unknown): number {
  return isNode(node) ? (node.range?.[0] ?? 0) : 0
}

/** True for a value that was left out, as in `key:` and nothing. Its position is that of the key. */
function isBlank(node: unknown): boolean {
  return !isNode(node) || (isScalar(node) && node.range?.[0] === node.range?.[1])
}

function keyText({ key }: Pair): string | undefined {
  if (!isScalar(key)) return undefined
  return scalarText(key)
}

function scalarText({ value, source }: Scalar): string | undefined {
  if (typeof value === 'string') return value
  return value === null ? undefined : source
}
