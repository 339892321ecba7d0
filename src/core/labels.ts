// Holds labels (`source:key=value`) and label sets. Each set has a number, and equal sets have equal numbers while they exist. A
// component that keeps a number calls `retain`, and later `release`. `collect` frees sets that no component retains. A number is
// never used for a second set, so a cache that still has the number of a freed set only misses.
//
// Sources of labels are k8s, fqdn (`fqdn:` + selector text), cidr (`cidr:` + prefix), reserved, external, and any source that the operator
// names. A union of two sets that was made before costs one look at a direct-mapped cache.

import { invariant } from './invariant.ts'
import { parsePrefix, type Prefix } from './ip.ts'
import { hashPair } from './tables/keyed-hash.ts'

export type LabelKind = 'fqdn' | 'cidr' | 'plain'

export interface Label {
  readonly id: number
  readonly text: string
  /** Source and key. A set must have at most one label with each key. The key of a fqdn or cidr label is its whole text. */
  readonly key: string
  readonly kind: LabelKind
  /** The prefix of a cidr label. Undefined for other labels. */
  readonly prefix: Prefix | undefined
}

export interface LabelSet {
  readonly id: number
  /** Sorted by label number. */
  readonly labels: readonly Label[]
  readonly fqdnCount: number
  /** The cidr label with the longest prefix, or undefined. Only a set of one prefix's own facts can have several cidr labels. */
  readonly cidr: Label | undefined
}

interface CountedLabel extends Label {
  /** How many sets have the label. */
  uses: number
}

interface CountedSet extends LabelSet {
  references: number
  /** The next set with the same hash. */
  next: CountedSet | undefined
}

/** The number of the set without labels. This set always exists. */
export const EMPTY_SET = 0

const UNION_CACHE = 1 << 14

export class LabelSets {
  readonly #labels = new Map<string, CountedLabel>()
  readonly #sets = new Map<number, CountedSet>()
  /** The first set of each hash. `next` leads to the other sets with that hash. */
  readonly #byHash = new Map<number, CountedSet>()
  readonly #unionKeys = new Int32Array(UNION_CACHE * 2)
  readonly #unionResults = new Int32Array(UNION_CACHE)
  #loose: CountedSet[] = []
  #nextSet = 1
  #nextLabel = 1

  constructor() {
    this.#sets.set(EMPTY_SET, {
      id: EMPTY_SET,
      labels: [],
      fqdnCount: 0,
      cidr: undefined,
      references: 1,
      next: undefined,
    })
  }

  /** How many sets exist. */
  get size(): number {
    return this.#sets.size
  }

  has(id: number): boolean {
    return this.#sets.has(id)
  }

  get(id: number): LabelSet {
    const set = this.#sets.get(id)
    invariant(set !== undefined, 'a label set that is asked for lives', id)
    return set
  }

  /** Returns the number of the set of these labels. A label that is given twice is in the set once. */
  intern(texts: readonly string[]): number {
    if (texts.length === 0) return EMPTY_SET
    return this.#internLabels(texts.map((text) => this.#label(text)))
  }

  /** Returns the number of the set of these labels. The labels must come from sets of this object. */
  internLabels(labels: readonly Label[]): number {
    return labels.length === 0 ? EMPTY_SET : this.#internLabels([...labels])
  }

  /** Returns the number of the set that has all labels of both sets. */
  union(a: number, b: number): number {
    if (a === b || b === EMPTY_SET) return a
    if (a === EMPTY_SET) return b
    const slot = (Math.imul(a, 0x9e3779b1) ^ b) & (UNION_CACHE - 1)
    if (this.#unionKeys[slot * 2] === a && this.#unionKeys[slot * 2 + 1] === b) {
      const known = this.#unionResults[slot]!
      if (this.#sets.has(known)) return known
    }
    const result = this.#internLabels(this.get(a).labels.concat(this.get(b).labels))
    this.#unionKeys[slot * 2] = a
    this.#unionKeys[slot * 2 + 1] = b
    this.#unionResults[slot] = result
    return result
  }

  /** The texts of the labels, sorted for people. */
  format(id: number): readonly string[] {
    return this.get(id)
      .labels.map((label) => label.text)
      .sort()
  }

  /** The label with this text. Undefined when no set has it. */
  find(text: string): Label | undefined {
    return this.#labels.get(text)
  }

  retain(id: number): void {
    if (id === EMPTY_SET) return
    const set = this.#sets.get(id)
    invariant(set !== undefined, 'a retained label set lives', id)
    set.references++
  }

  release(id: number): void {
    if (id === EMPTY_SET) return
    const set = this.#sets.get(id)
    invariant(set !== undefined && set.references > 0, 'a released label set is retained', id)
    set.references--
    if (set.references === 0) this.#loose.push(set)
  }

  /**
   * Frees the sets that no component retains. Call `collect` between batches, and never while only a variable has a number that
   * is still needed.
   */
  collect(): void {
    const loose = this.#loose
    if (loose.length === 0) return
    this.#loose = []
    for (const set of loose) {
      if (set.references === 0 && this.#sets.get(set.id) === set) this.#free(set)
    }
  }

  /** Lists every set except the empty set, with the number of `retain` calls that were not released. For checks. */
  *references(): Iterable<readonly [id: number, references: number]> {
    for (const { id, references } of this.#sets.values()) {
      if (id !== EMPTY_SET) yield [id, references]
    }
  }

  #free(set: CountedSet): void {
    this.#sets.delete(set.id)
    this.#unchain(set)
    for (const { text } of set.labels) {
      const label = this.#labels.get(text)
      if (label !== undefined && --label.uses === 0) this.#labels.delete(text)
    }
  }

  #unchain(set: CountedSet): void {
    const hash = hashLabels(set.labels)
    let before = this.#byHash.get(hash)
    if (before === set) {
      if (set.next === undefined) this.#byHash.delete(hash)
      else this.#byHash.set(hash, set.next)
      return
    }
    while (before !== undefined && before.next !== set) before = before.next
    if (before !== undefined) before.next = set.next
  }

  /** Returns the number of the set of these labels, in any order. Keeps the array, so the caller must not use it again. */
  #internLabels(labels: Label[]): number {
    if (labels.length > 1) sortUnique(labels)
    const hash = hashLabels(labels)
    const first = this.#byHash.get(hash)
    for (let known = first; known !== undefined; known = known.next) {
      if (sameLabels(known.labels, labels)) return known.id
    }
    const set: CountedSet = {
      id: this.#nextSet++,
      labels,
      fqdnCount: countFqdn(labels),
      cidr: longestCidr(labels),
      references: 0,
      next: first,
    }
    this.#sets.set(set.id, set)
    this.#byHash.set(hash, set)
    for (const { text } of labels) {
      const label = this.#labels.get(text)
      if (label !== undefined) label.uses++
    }
    this.#loose.push(set)
    return set.id
  }

  #label(text: string): Label {
    const known = this.#labels.get(text)
    if (known !== undefined) return known
    const label = makeLabel(this.#nextLabel++, text)
    this.#labels.set(text, label)
    return label
  }
}

function makeLabel(id: number, text: string): CountedLabel {
  const uses = 0
  if (text.startsWith('fqdn:')) {
    return { id, text, key: text, kind: 'fqdn', prefix: undefined, uses }
  }
  if (text.startsWith('cidr:')) {
    const parsed = parsePrefix(text.slice(5))
    invariant(parsed.kind === 'ok', `cidr label ${text} names a prefix`)
    return { id, text, key: text, kind: 'cidr', prefix: parsed.prefix, uses }
  }
  const equals = text.indexOf('=')
  const key = equals < 0 ? text : text.slice(0, equals)
  return { id, text, key, kind: 'plain', prefix: undefined, uses }
}

/** Sorts labels by number and removes duplicates. */
function sortUnique(labels: Label[]): void {
  labels.sort(byNumber)
  let count = 0
  for (const label of labels) {
    if (count === 0 || labels[count - 1] !== label) labels[count++] = label
  }
  if (count < labels.length) labels.length = count
}

function byNumber(a: Label, b: Label): number {
  return a.id - b.id
}

function countFqdn(labels: readonly Label[]): number {
  let count = 0
  for (const { kind } of labels) if (kind === 'fqdn') count++
  return count
}

/** The cidr label with the longest prefix. Undefined when there is no cidr label. */
export function longestCidr(labels: readonly Label[]): Label | undefined {
  let longest: Label | undefined
  for (const label of labels) {
    if (label.prefix === undefined) continue
    if (longest?.prefix === undefined || label.prefix.length > longest.prefix.length)
      longest = label
  }
  return longest
}

function hashLabels(labels: readonly Label[]): number {
  let hash = labels.length
  for (const label of labels) hash = hashPair(hash, label.id)
  return hash
}

function sameLabels(a: readonly Label[], b: readonly Label[]): boolean {
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false
  return true
}
