// A text that a person wrote, read into plain values that still know where they stand: the face that
// config, policy and endpoints files share, whatever syntax they are in (documents/yaml-source.ts). A Reader
// walks one document and collects a fault for everything that isn't as expected; it never throws on input.

import type { Fault, Position } from '../core/errors.ts'
import { nearest } from '../core/did-you-mean.ts'

/** Steps from the top of a document: keys of mappings and indexes of lists. */
export type SourcePath = readonly (string | number)[]

export interface SourceDocument {
  /** Mappings (without a prototype), lists, texts, numbers, booleans and null. */
  readonly value: unknown
  /** Where the value at the path begins, or the key before it; of a path that isn't there, its nearest ancestor. */
  positionOf(path: SourcePath, part?: 'key' | 'value'): Position
}

/** Whether a value is a mapping. */
export function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** What was found, for messages: short, never more than a line. */
export function describeValue(value: unknown): string {
  if (value === null || value === undefined) return 'nothing'
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list'
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (typeof value !== 'string') return 'a mapping'
  return JSON.stringify(value.length > 60 ? `${value.slice(0, 57)}...` : value)
}

/** `spec.egress[0].toFQDNs`; keys that aren't plain words are quoted. */
export function formatPath(path: SourcePath): string {
  let text = ''
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`
    else if (!/^[\w-]+$/.test(step)) text += `[${describeValue(step)}]`
    else text += text === '' ? step : `.${step}`
  }
  return text
}

/** `; did you mean "listeners"?` or nothing. */
export function suggestion(word: string, candidates: Iterable<string>): string {
  const meant = nearest(word, candidates)
  return meant === undefined ? '' : `; did you mean ${JSON.stringify(meant)}?`
}

/** A field that is known and means something elsewhere, but that nothing here can do. */
export interface Unsupported {
  /** `is not supported: ...`, with what to do instead. */
  readonly unsupported: string
}

export function notSupported(instead: string): Unsupported {
  return { unsupported: `is not supported: ${instead}` }
}

/** What may stand in a mapping: true, why the key is refused (`is not built yet`), or that it's not supported. */
export type FieldTable = ReadonlyMap<string, true | string | Unsupported>

/** Whether a field is among those found that the table calls unsupported: then warned of, and no more. */
export function hasUnsupported(fields: ReadonlyMap<string, Reader>, table: FieldTable): boolean {
  return [...fields.keys()].some((key) => typeof table.get(key) === 'object')
}

/** A path as one step from where another value is: put together when it is asked for, which is mostly never. */
interface Step {
  readonly above: Reader
  readonly step: string | number
}

/** What readers of one document find; they add to these lists. */
export interface Findings {
  readonly faults: Fault[]
  /** Takes what is not supported. Without it that is a fault. */
  readonly warnings?: Fault[] | undefined
  /** Takes what is read otherwise than it looks. Without it no reader reports that. */
  readonly notes?: Fault[] | undefined
}

/** One value of a document on the way through it. */
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

  /** Adds a fault at this value (or at its key); the path leads the message. */
  fault(message: string, part: 'key' | 'value' = 'value'): undefined {
    this.#findings.faults.push(this.#finding(message, part))
    return undefined
  }

  /** Reports that this value (or its key) is read otherwise than it looks. */
  note(message: string, part: 'key' | 'value' = 'value'): void {
    this.#findings.notes?.push(this.#finding(message, part))
  }

  /** A fault, or where the reader was given a list for them, a warning. */
  unsupported(message: string, part: 'key' | 'value' = 'value'): undefined {
    const { faults, warnings = faults } = this.#findings
    warnings.push(this.#finding(message, part))
    return undefined
  }

  /** The same value, for which what isn't supported is a fault in any case. */
  strict(): Reader {
    const { faults, notes } = this.#findings
    return new Reader(this.#document, { faults, notes }, this.#place, this.value)
  }

  /** The usual fault. */
  expected(what: string): undefined {
    return this.fault(`found ${describeValue(this.value)}, expected ${what}`)
  }

  /**
   * The known fields that are there, by key, with those that are not supported (`hasUnsupported`). A key that isn't
   * in the table, or that the table refuses, is a fault. A null value is the same as no field, as in Kubernetes.
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

  /** Every entry of a mapping whose keys are free; null values included. */
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

/** `a`, `a or b`, `a, b or c`. */
export function listWords(words: readonly string[]): string {
  return words.length < 2
    ? (words[0] ?? 'nothing')
    : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`
}
