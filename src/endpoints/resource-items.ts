// ResourceItems reads a large resources file again after a change, and reuses the records of the text before. It cuts a text of the usual
// form (`resources:` and one list below it) into its items. When the text changes, it finds the common beginning and the common end of
// both texts, and reads only the items between. All other records stay the same objects, so callers can skip them. If a text has
// another form or a fault, the full reader reads it (resources.ts). The caller finds names that occur twice.
//
// Cost of one changed item in 100,000: some milliseconds to compare the texts.

import type { Fault, Position } from '../core/errors.ts'
import { replaced } from '../core/tables/list-difference.ts'
import { readQuickYaml } from '../documents/quick-yaml.ts'
import { isMapping, Reader, type SourceDocument } from '../documents/source-document.ts'
import { commonEnd, commonStart, linesIn } from '../core/tables/text-difference.ts'
import { parseYamlDocument } from '../documents/yaml-source.ts'
import { readLabels } from './read.ts'
import {
  parseResources,
  readResource,
  type ResourceRecord,
  type ResourcesFile,
} from './resources.ts'

/** The position of an item in the text. The item's record uses the same object, so a change of `line` also moves the record. */
interface Place extends Position {
  line: number
}

/** A text that is cut into items. */
interface Cut {
  readonly text: string
  /** The number of blanks before the dash of each item. */
  readonly indent: number
  readonly records: readonly ResourceRecord[]
  readonly places: readonly Place[]
  /** The offset of the first line of each item. */
  readonly starts: Int32Array
}

const BLANK = '[ ]*(?:#[^\n]*)?'
const HEAD = new RegExp(`^(?:${BLANK}\n)*resources:(?:[ ]+#[^\n]*|[ ]*)\n(?:${BLANK}\n)*(?=( *)- )`)
/** The beginning of an item whose value begins on the same line. */
const ENTRY = / *- +(?=["{A-Za-z])/y

type Read =
  | { readonly kind: 'ok'; readonly items: Items }
  /** An item has a fault. `exact`: the full reader would find the same faults in the whole text. */
  | { readonly kind: 'bad'; readonly faults: readonly Fault[]; readonly exact: boolean }
  /** The text does not have the usual form. */
  | { readonly kind: 'other' }

interface Items {
  readonly records: readonly ResourceRecord[]
  readonly places: readonly Place[]
  readonly starts: readonly number[]
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

  /** Reads a text like `parseResources`, but does not always report names that occur twice. */
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
    if (read.kind === 'ok') {
      this.#cut = { text, indent, ...read.items, starts: Int32Array.from(read.items.starts) }
    }
    return read
  }

  /** Reads a changed text. If the text has a fault, the items of the last good text stay for the next call. */
  #readAgain(cut: Cut, text: string): Read {
    const { text: before, indent, records, places, starts } = cut
    const same = commonStart(before, text)
    const change = before.length - commonEnd(before, text, same)
    // Read from the item before the change, because new lines can continue that item, to the item after the change.
    const from = lastStartBefore(starts, same)
    const until = lastStartBefore(starts, change) + 1
    const [first, start] = [places[from], starts[from]]
    const end = starts[until] ?? before.length
    const grown = text.length - before.length
    const isCut = until < places.length && text[end + grown - 1] !== '\n'
    if (first === undefined || start === undefined || isCut) return OTHER
    const { line } = first
    const part = { from: start, until: end + grown, indent, line, index: from }
    const read = this.#readItems(text, part)
    if (read.kind !== 'ok') return read
    const { items } = read
    moveLines(places, until, items.lines - linesIn(before.slice(start, end)))
    const both = {
      records: replaced(records, from, until, items.records),
      places: replaced(places, from, until, items.places),
    }
    const moved = movedStarts(starts, { from, until, items: items.starts, grown })
    this.#cut = { text, indent, ...both, starts: moved }
    return { kind: 'ok', items: { ...items, ...both } }
  }

  /** Reads the items that begin in a part of the text. The first of these items has the number `index`. */
  #readItems(text: string, part: Part): Read {
    const { indent, until } = part
    const next = new RegExp(`\n(?! {${indent + 1}}|${BLANK}(?:\n|$))`, 'g')
    const [records, places, starts]: [ResourceRecord[], Place[], number[]] = [[], [], []]
    const faults: Fault[] = []
    let [line, exact] = [part.line, true]
    for (let start = part.from; start < until;) {
      next.lastIndex = start
      const end = Math.min(until, (next.exec(text)?.index ?? until) + 1)
      ENTRY.lastIndex = start
      const [dash] = ENTRY.exec(text) ?? []
      if (dash === undefined || !isIndent(dash, indent)) return OTHER
      const entry = text.slice(start, end)
      const place: Place = { file: this.#file, line, column: dash.length + 1 }
      const read = readEntry(entry, place, part.index + places.length, this.#labels)
      faults.push(...read.faults)
      exact &&= read.exact
      if (read.record !== undefined) records.push(read.record)
      places.push(place)
      starts.push(start)
      line += linesIn(entry)
      start = end
    }
    if (faults.length > 0) return { kind: 'bad', faults, exact }
    return { kind: 'ok', items: { records, places, starts, lines: line - part.line } }
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

/** Reads one item by itself. A fault of syntax is not exact, because it can come from cutting the item out of the text. */
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
  const reader = new Reader(document, { faults }, ['resources', index], item)
  return shared === undefined
    ? readResource(reader)
    : readResource(reader, (labels) => shared.read(labels, faults))
}

/** Keeps lists of labels by their text, because many items have the same labels. The labels are then read once. */
class SharedLabels {
  readonly #known = new Map<string, readonly string[]>()

  read(reader: Reader | undefined, faults: readonly Fault[]): readonly string[] {
    const written = writtenIn(reader?.value)
    const known = written === undefined ? undefined : this.#known.get(written)
    if (known !== undefined) return known
    const before = faults.length
    const labels = readLabels(reader, 'resource')
    if (written !== undefined && faults.length === before) this.#known.set(written, labels)
    return labels
  }

  clear(): void {
    this.#known.clear()
  }
}

/** Returns a key that is equal for equal mappings of texts. Undefined if a value is no text. */
function writtenIn(labels: unknown): string | undefined {
  if (!isMapping(labels)) return undefined
  let written = ''
  for (const key of Object.keys(labels)) {
    const text = labels[key]
    if (typeof text !== 'string') return undefined
    written += `${key}\n${text}\n`
  }
  return written
}

function itemOf(list: unknown): unknown {
  const items: readonly unknown[] = Array.isArray(list) ? list : []
  return items.length === 1 ? items[0] : undefined
}

function isIndent(dash: string, indent: number): boolean {
  return dash.indexOf('-') === indent
}

function moveLines(places: readonly Place[], from: number, lines: number): void {
  if (lines === 0) return
  for (let i = from; i < places.length; i++) {
    const place = places[i]
    if (place !== undefined) place.line += lines
  }
}

/** Returns the starts after a change. New starts replace those from `from` up to `until`, and later starts move by `grown`. */
function movedStarts(starts: Int32Array, { from, until, items, grown }: Move): Int32Array {
  const moved = new Int32Array(starts.length + items.length - (until - from))
  moved.set(starts.subarray(0, from))
  moved.set(items, from)
  for (let i = until, to = from + items.length; i < starts.length; i++, to++) {
    moved[to] = starts[i]! + grown
  }
  return moved
}

interface Move {
  readonly from: number
  readonly until: number
  readonly items: readonly number[]
  readonly grown: number
}

/** Returns the index of the last item that begins before an offset; -1 if there is none. */
function lastStartBefore(starts: Int32Array, offset: number): number {
  let [low, high] = [-1, starts.length - 1]
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if ((starts[middle] ?? offset) < offset) low = middle
    else high = middle - 1
  }
  return low
}
