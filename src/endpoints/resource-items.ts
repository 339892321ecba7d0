// A resources file that changes now and then and has very many entries: what was read of it before is used again. A text of
// the usual form, `resources:` and one list below it, is cut into its entries; of a later text only the entries between
// the common beginning and the common end are read. The records of all others stay the same objects, so that whoever
// applies them need not look at them either. A text of another form, or with anything wrong in it, is read as a whole,
// by the reader that knows where and what. Names that are there twice are left to whoever compares files.
//
// Cost of one changed entry in 100,000: comparing the texts, some milliseconds.

import type { Fault, Position } from '../core/errors.ts'
import { replaced } from '../core/list-difference.ts'
import { readQuickYaml } from '../core/quick-yaml.ts'
import { Reader, type SourceDocument } from '../core/source-document.ts'
import { parseYamlDocument } from '../config/yaml-source.ts'
import { readLabels } from './read.ts'
import {
  parseResources,
  readResource,
  type ResourceRecord,
  type ResourcesFile,
} from './resources.ts'

/** Where an entry is in the text. Its record has it as its position, so a line that moves moves there, too. */
interface Place extends Position {
  line: number
  /** Offset of the first character of its line. */
  start: number
}

/** A text cut into entries. */
interface Cut {
  readonly text: string
  /** Blanks before the dash of each entry. */
  readonly indent: number
  readonly records: readonly ResourceRecord[]
  readonly places: readonly Place[]
}

const BLANK = '[ ]*(?:#[^\n]*)?'
const HEAD = new RegExp(`^(?:${BLANK}\n)*resources:(?:[ ]+#[^\n]*|[ ]*)\n(?:${BLANK}\n)*(?=( *)- )`)
/** What an entry begins with, where its value begins on the same line. */
const ENTRY = / *- +(?=["{A-Za-z])/y

type Read =
  | { readonly kind: 'ok'; readonly items: Items }
  /** Faults of entries, each where it is; `exact` says as much as those of the whole text would. */
  | { readonly kind: 'bad'; readonly faults: readonly Fault[]; readonly exact: boolean }
  /** Not of the usual form. */
  | { readonly kind: 'other' }

interface Items {
  readonly records: readonly ResourceRecord[]
  readonly places: readonly Place[]
  readonly lines: number
}

const OTHER: Read = { kind: 'other' }

export class ResourceItems {
  readonly #file: string
  readonly #labels = new SharedLabels()
  #cut: Cut | undefined

  constructor(file: string) {
    this.#file = file
  }

  /** As `parseResources`, but for names that are there twice. */
  parse(text: string): ResourcesFile {
    const again = this.#cut === undefined ? OTHER : this.#readAgain(this.#cut, text)
    if (again.kind === 'bad') return { resources: [], faults: again.faults }
    const read = again.kind === 'ok' ? again : this.#readAll(text)
    if (read.kind === 'ok') return { resources: read.items.records, faults: [] }
    if (read.kind === 'bad' && read.exact) return { resources: [], faults: read.faults }
    return parseResources(text, this.#file)
  }

  #readAll(text: string): Read {
    const [head, blanks] = HEAD.exec(text) ?? []
    this.#cut = undefined
    this.#labels.clear()
    if (head === undefined || blanks === undefined) return OTHER
    const [indent, line] = [blanks.length, 1 + linesIn(head)]
    const read = this.#readItems(text, {
      from: head.length,
      until: text.length,
      indent,
      line,
      index: 0,
    })
    if (read.kind === 'ok') this.#cut = { text, indent, ...read.items }
    return read
  }

  /** The text after a change; when it is bad, what was cut before stays for the next one. */
  #readAgain(cut: Cut, text: string): Read {
    const { text: before, indent, records, places } = cut
    const same = commonStart(before, text)
    const change = before.length - commonEnd(before, text, same)
    // From the entry before the change, which what is new may go on with, to the one after it.
    const from = lastStartBefore(places, same)
    const until = lastStartBefore(places, change) + 1
    const first = places[from]
    const end = places[until]?.start ?? before.length
    const grown = text.length - before.length
    if (first === undefined || (until < places.length && text[end + grown - 1] !== '\n')) {
      return OTHER
    }
    const { line, start } = first
    const part = { from: start, until: end + grown, indent, line, index: from }
    const read = this.#readItems(text, part)
    if (read.kind !== 'ok') return read
    const { items } = read
    movePlaces(places, until, grown, items.lines - linesIn(before.slice(start, end)))
    const both = {
      records: replaced(records, from, until, items.records),
      places: replaced(places, from, until, items.places),
    }
    this.#cut = { text, indent, ...both }
    return { kind: 'ok', items: { ...both, lines: 0 } }
  }

  /** The entries that begin in a part of the text, the first of which is number `index`. */
  #readItems(text: string, part: Part): Read {
    const { indent, until } = part
    const next = new RegExp(`\n(?! {${indent + 1}}|${BLANK}(?:\n|$))`, 'g')
    const items: { records: ResourceRecord[]; places: Place[] } = { records: [], places: [] }
    const faults: Fault[] = []
    let [line, exact] = [part.line, true]
    for (let start = part.from; start < until;) {
      next.lastIndex = start
      const end = Math.min(until, (next.exec(text)?.index ?? until) + 1)
      ENTRY.lastIndex = start
      const [dash] = ENTRY.exec(text) ?? []
      if (dash === undefined || !isIndent(dash, indent)) return OTHER
      const entry = text.slice(start, end)
      const place: Place = { file: this.#file, line, column: dash.length + 1, start }
      const read = readEntry(entry, place, part.index + items.places.length, this.#labels)
      faults.push(...read.faults)
      exact &&= read.exact
      if (read.record !== undefined) items.records.push(read.record)
      items.places.push(place)
      line += linesIn(entry)
      start = end
    }
    if (faults.length > 0) return { kind: 'bad', faults, exact }
    return { kind: 'ok', items: { ...items, lines: line - part.line } }
  }
}

interface Part {
  readonly from: number
  readonly until: number
  readonly indent: number
  readonly line: number
  readonly index: number
}

interface EntryRead {
  readonly record?: ResourceRecord | undefined
  readonly faults: readonly Fault[]
  readonly exact: boolean
}

/** One entry by itself. What is wrong with its syntax may be so because it was cut out of the text. */
function readEntry(entry: string, place: Place, index: number, shared: SharedLabels): EntryRead {
  const faults: Fault[] = []
  const quick = itemOf(readQuickYaml(entry))
  if (quick !== undefined) {
    const record = readItem(quick, index, faults, () => place, shared)
    if (faults.length === 0) return { record, faults, exact: true }
  }
  const { document, faults: syntax } = parseYamlDocument(entry, place.file)
  const below = ({ line, ...rest }: Position): Position => ({
    ...rest,
    line: line + place.line - 1,
  })
  if (document === undefined || syntax.length > 0) {
    const moved = syntax.map(({ position, message }) => ({ position: below(position), message }))
    return { faults: moved, exact: false }
  }
  const found: Fault[] = []
  const record = readItem(itemOf(document.value), index, found, ([, , ...rest], part) =>
    rest.length === 0 && part !== 'key' ? place : below(document.positionOf([0, ...rest], part)),
  )
  return { record, faults: found, exact: true }
}

function readItem(
  item: unknown,
  index: number,
  faults: Fault[],
  positionOf: SourceDocument['positionOf'],
  shared?: SharedLabels,
): ResourceRecord | undefined {
  const document = { value: undefined, positionOf }
  const reader = new Reader(document, faults, ['resources', index], item)
  return shared === undefined
    ? readResource(reader)
    : readResource(reader, (labels) => shared.read(labels, faults))
}

/** Lists of labels by what is written: many entries have the same ones, and are spared the reading. */
class SharedLabels {
  readonly #known = new Map<string, readonly string[]>()

  read(reader: Reader | undefined, faults: readonly Fault[]): readonly string[] {
    const written = JSON.stringify(reader?.value ?? null)
    const known = this.#known.get(written)
    if (known !== undefined) return known
    const before = faults.length
    const labels = readLabels(reader, 'resource')
    if (faults.length === before) this.#known.set(written, labels)
    return labels
  }

  clear(): void {
    this.#known.clear()
  }
}

function itemOf(list: unknown): unknown {
  const items: readonly unknown[] = Array.isArray(list) ? list : []
  return items.length === 1 ? items[0] : undefined
}

function isIndent(dash: string, indent: number): boolean {
  return dash.indexOf('-') === indent
}

function movePlaces(
  places: readonly Place[],
  from: number,
  characters: number,
  lines: number,
): void {
  if (characters === 0 && lines === 0) return
  for (let i = from; i < places.length; i++) {
    const place = places[i]
    if (place === undefined) continue
    place.start += characters
    place.line += lines
  }
}

/** The last entry that begins before an offset; -1: none does. */
function lastStartBefore(places: readonly Place[], offset: number): number {
  let [low, high] = [-1, places.length - 1]
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if ((places[middle]?.start ?? offset) < offset) low = middle
    else high = middle - 1
  }
  return low
}

/** How many characters two texts have in common at their beginning; halves are compared, not characters. */
function commonStart(a: string, b: string): number {
  let [low, high] = [0, Math.min(a.length, b.length)]
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if (a.slice(low, middle) === b.slice(low, middle)) low = middle
    else high = middle - 1
  }
  return low
}

/** The same at their end, outside of a beginning of that length. */
function commonEnd(a: string, b: string, start: number): number {
  let [low, high] = [0, Math.min(a.length, b.length) - start]
  while (low < high) {
    const middle = (low + high + 1) >> 1
    const partA = a.slice(a.length - middle, a.length - low)
    if (partA === b.slice(b.length - middle, b.length - low)) low = middle
    else high = middle - 1
  }
  return low
}

function linesIn(text: string): number {
  let count = 0
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) count++
  return count
}
