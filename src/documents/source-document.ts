// A SourceDocument is a plain value that knows its positions in a text. Config, policy and endpoints files are read into this form,
// whatever their syntax (documents/yaml-source.ts). A Reader walks over one document and adds a fault for everything unexpected. It never
// throws.

import type { Fault, Position } from '../core/errors.ts'
import { nearest } from '../core/did-you-mean.ts'

/** Steps from the top of a document: keys of mappings and indexes of lists. */
export type SourcePath = readonly (string | number)[]

export interface SourceDocument {
  /** Mappings (without a prototype), lists, texts, numbers, booleans and null. */
  readonly value: unknown
  /** Returns the position of the value at the path, or of its key. For a missing path, returns the position of the nearest ancestor. */
  positionOf(path: SourcePath, part?: 'key' | 'value'): Position
}

/** True for a mapping. */
export function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Describes a value for messages, on one line. */
export function describeValue(value: unknown): string {
  if (value === null || value === undefined) return 'nothing'
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list'
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (typeof value !== 'string') return 'a mapping'
  return JSON.stringify(value.length > 60 ? `${value.slice(0, 57)}...` : value)
}

/** Formats a path as `spec.egress[0].toFQDNs`. Quotes keys that are no plain words. */
export function formatPath(path: SourcePath): string {
  let text = ''
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`
    else if (!/^[\w-]+$/.test(step)) text += `[${describeValue(step)}]`
    else text += text === '' ? step : `.${step}`
  }
  return text
}

/** Returns `; did you mean "listeners"?`, or an empty text if no candidate is similar. */
export function suggestion(word: string, candidates: Iterable<string>): string {
  const meant = nearest(word, candidates)
  return meant === undefined ? '' : `; did you mean ${JSON.stringify(meant)}?`
}

/** A known field that other programs support and namegate does not. */
export interface Unsupported {
  /** The message: `is not supported: ...`, with the alternative. */
  readonly unsupported: string
}

/** Makes the state of an unsupported field. `instead` names the alternative. */
export function notSupported(instead: string): Unsupported {
  return { unsupported: `is not supported: ${instead}` }
}

/** The keys that a mapping can have. The value is true for a known field, the reason for a refused field, or Unsupported. */
export type FieldTable = ReadonlyMap<string, true | string | Unsupported>

/** True if `fields` has an unsupported field. The reader has reported the field already. */
export function hasUnsupported(fields: ReadonlyMap<string, Reader>, table: FieldTable): boolean {
  return [...fields.keys()].some((key) => typeof table.get(key) === 'object')
}

/** A path as one step from the path of another reader. The whole path is made only when a fault needs it. */
interface Step {
  readonly above: Reader
  readonly step: string | number
}

/** The lists to which the readers of one document add. */
export interface Findings {
  readonly faults: Fault[]
  /** Receives unsupported fields. Absent: unsupported fields are faults. */
  readonly warnings?: Fault[] | undefined
  /** Receives notes about texts that do not mean what they seem to mean. Absent: no notes are kept. */
  readonly notes?: Fault[] | undefined
}

/** Reads one value of a document. */
export class Reader {
  readonly value: unknown
  readonly #place: SourcePath | Step
  readonly #document: SourceDocument
  readonly #findings: Findings

  constructor(
    document: SourceDocument,
    findings: Findings,
    place: SourcePath | Step = [],
    value?: unknown,
  ) {
    this.#document = document
    this.#findings = findings
    this.#place = place
    this.value = 'above' in place || place.length > 0 ? value : document.value
  }

  get path(): SourcePath {
    const place = this.#place
    return 'above' in place ? [...place.above.path, place.step] : place
  }

  get position(): Position {
    return this.#document.positionOf(this.path)
  }

  /** Adds a fault at this value, or at its key. The message begins with the path. */
  fault(message: string, part: 'key' | 'value' = 'value'): undefined {
    this.#findings.faults.push(this.#finding(message, part))
    return undefined
  }

  /** Adds a note that this value, or its key, does not mean what it seems to mean. */
  note(message: string, part: 'key' | 'value' = 'value'): void {
    this.#findings.notes?.push(this.#finding(message, part))
  }

  /** Adds a warning. Without a list for warnings, adds a fault. */
  unsupported(message: string, part: 'key' | 'value' = 'value'): undefined {
    const { faults, warnings = faults } = this.#findings
    warnings.push(this.#finding(message, part))
    return undefined
  }

  /** Returns a reader of the same value. For that reader, unsupported fields are always faults. */
  strict(): Reader {
    const { faults, notes } = this.#findings
    return new Reader(this.#document, { faults, notes }, this.#place, this.value)
  }

  /** Adds the usual fault: `found ..., expected WHAT`. */
  expected(what: string): undefined {
    return this.fault(`found ${describeValue(this.value)}, expected ${what}`)
  }

  /**
   * Returns the known fields by key, with unsupported fields (`hasUnsupported`). A key that the table lacks or refuses is a fault. A field
   * with the value null is treated as absent, as in Kubernetes.
   */
  fields(table: FieldTable, what = 'a mapping'): ReadonlyMap<string, Reader> | undefined {
    if (!isMapping(this.value)) return this.expected(what)
    const found = new Map<string, Reader>()
    for (const key of Object.keys(this.value)) {
      const value = this.value[key]
      const child = this.#child(key, value)
      const state = table.get(key)
      if (state === undefined) this.#unknownField(child, key, table)
      else if (value === null) continue
      else if (state === true) found.set(key, child)
      else if (typeof state === 'string') child.fault(state, 'key')
      else {
        child.unsupported(state.unsupported, 'key')
        found.set(key, child)
      }
    }
    return found
  }

  #finding(message: string, part: 'key' | 'value'): Fault {
    const path = formatPath(this.path)
    return {
      position: this.#document.positionOf(this.path, part),
      message: path === '' ? message : `${path}: ${message}`,
    }
  }

  #unknownField(child: Reader, key: string, table: FieldTable): void {
    const known = [...table].filter(([, state]) => state === true).map(([name]) => name)
    const hint = suggestion(key, table.keys()) || `, expected ${listWords(known)}`
    this.#findings.faults.push({
      position: this.#document.positionOf(child.path, 'key'),
      message: `unknown field ${formatPath(child.path)}${hint}`,
    })
  }

  /** Returns all keys and values of a mapping that can have any keys. Includes null values. */
  entries(what = 'a mapping'): readonly (readonly [string, Reader])[] | undefined {
    if (!isMapping(this.value)) return this.expected(what)
    return Object.entries(this.value).map(([key, value]) => [key, this.#child(key, value)])
  }

  items(what = 'a list'): readonly Reader[] | undefined {
    if (!Array.isArray(this.value)) return this.expected(what)
    return this.value.map((value: unknown, i) => this.#child(i, value))
  }

  text(what = 'a text'): string | undefined {
    if (typeof this.value === 'string') return this.value
    const quoted = typeof this.value === 'number' || typeof this.value === 'boolean'
    return this.expected(quoted ? `${what} (write it in quotes)` : what)
  }

  flag(): boolean | undefined {
    return typeof this.value === 'boolean' ? this.value : this.expected('true or false')
  }

  #child(step: string | number, value: unknown): Reader {
    return new Reader(this.#document, this.#findings, { above: this, step }, value)
  }
}

/** Joins words: `a`, `a or b`, `a, b or c`. */
export function listWords(words: readonly string[]): string {
  return words.length < 2
    ? (words[0] ?? 'nothing')
    : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`
}
