// Labels (`source:key=value`) and label sets, each known by a number. A label set is canonical: equal sets
// have equal numbers while they live. Sets are counted: who keeps a number calls `retain`, and `release`
// when it lets go; `collect` frees those that nobody kept. Numbers of sets are never used twice, so a
// cache that still names a freed set merely misses.
//
// Sources here: k8s, fqdn (`fqdn:` + selector text), cidr (`cidr:` + prefix), reserved, external, or any
// of the operator's. Cost of a known union: one probe of a direct-mapped cache.

import { invariant } from './invariant.ts'
import { parsePrefix, type Prefix } from './ip.ts'

export type LabelKind = 'fqdn' | 'cidr' | 'plain'

export interface Label {
  readonly id: number
  readonly text: string
  /** What may stand once only in a set: source and key. A fqdn or cidr label is its own key. */
  readonly key: string
  readonly kind: LabelKind
  /** Of a cidr label only. */
  readonly prefix: Prefix | undefined
}

export interface LabelSet {
  readonly id: number
  /** Sorted by label number. */
  readonly labels: readonly Label[]
  readonly fqdnCount: number
  /** The one cidr label, if there is one (more only in a set of one prefix's own facts). */
  readonly cidr: Label | undefined
}

interface CountedSet extends LabelSet {
  references: number
}

/** The set without labels; always there. */
export const EMPTY_SET = 0

const UNION_CACHE = 1 << 14

export class LabelSets {
  readonly #labels = new Map<string, Label>()
  readonly #labelUses = new Map<number, number>()
  readonly #sets = new Map<number, CountedSet>()
  readonly #byHash = new Map<number, CountedSet[]>()
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
    })
  }

  /** How many sets live. */
  get size(): number {
    return this.#sets.size
  }

  has(id: number): boolean {
    return this.#sets.has(id)
  }

  get(id: number): LabelSet {
    const set = this.#sets.get(id)
    invariant(set !== undefined, `label set ${id} lives`)
    return set
  }

  /** The number of the set of these labels; duplicates fold. */
  intern(texts: readonly string[]): number {
    if (texts.length === 0) return EMPTY_SET
    return this.#internLabels(texts.map((text) => this.#label(text)))
  }

  /** The number of the set of these labels, as found in other sets. */
  internLabels(labels: readonly Label[]): number {
    return labels.length === 0 ? EMPTY_SET : this.#internLabels([...labels])
  }

  /** All labels of both. */
  union(a: number, b: number): number {
    if (a === b || b === EMPTY_SET) return a
    if (a === EMPTY_SET) return b
    const slot = (Math.imul(a, 0x9e3779b1) ^ b) & (UNION_CACHE - 1)
    if (this.#unionKeys[slot * 2] === a && this.#unionKeys[slot * 2 + 1] === b) {
      const known = this.#unionResults[slot]!
      if (this.#sets.has(known)) return known
    }
    const result = this.#internLabels([...this.get(a).labels, ...this.get(b).labels])
    this.#unionKeys[slot * 2] = a
    this.#unionKeys[slot * 2 + 1] = b
    this.#unionResults[slot] = result
    return result
  }

  /** Texts, sorted; for people. */
  format(id: number): readonly string[] {
    return this.get(id)
      .labels.map((label) => label.text)
      .sort()
  }

  /** A label of this text when any set has it. */
  find(text: string): Label | undefined {
    return this.#labels.get(text)
  }

  retain(id: number): void {
    if (id === EMPTY_SET) return
    const set = this.#sets.get(id)
    invariant(set !== undefined, `retained label set ${id} lives`)
    set.references++
  }

  release(id: number): void {
    if (id === EMPTY_SET) return
    const set = this.#sets.get(id)
    invariant(set !== undefined && set.references > 0, `released label set ${id} is retained`)
    set.references--
    if (set.references === 0) this.#loose.push(set)
  }

  /** Frees the sets that nobody retains. Call between batches, never while a number is only in a variable. */
  collect(): void {
    const loose = this.#loose
    if (loose.length === 0) return
    this.#loose = []
    for (const set of loose) {
      if (set.references === 0 && this.#sets.get(set.id) === set) this.#free(set)
    }
  }

  /** Every set but the empty one with how often it is retained; for checks. */
  *references(): Iterable<readonly [id: number, references: number]> {
    for (const { id, references } of this.#sets.values()) {
      if (id !== EMPTY_SET) yield [id, references]
    }
  }

  #free(set: CountedSet): void {
    this.#sets.delete(set.id)
    const hash = hashLabels(set.labels)
    const others = (this.#byHash.get(hash) ?? []).filter((other) => other !== set)
    if (others.length === 0) this.#byHash.delete(hash)
    else this.#byHash.set(hash, others)
    for (const label of set.labels) {
      const uses = (this.#labelUses.get(label.id) ?? 0) - 1
      if (uses > 0) {
        this.#labelUses.set(label.id, uses)
      } else {
        this.#labelUses.delete(label.id)
        this.#labels.delete(label.text)
      }
    }
  }

  /** Interns labels in any order; takes the array over. */
  #internLabels(labels: Label[]): number {
    labels.sort((a, b) => a.id - b.id)
    let count = 0
    for (const label of labels) {
      if (count === 0 || labels[count - 1] !== label) labels[count++] = label
    }
    labels.length = count
    const hash = hashLabels(labels)
    const candidates = this.#byHash.get(hash)
    const known = candidates?.find((set) => sameLabels(set.labels, labels))
    if (known !== undefined) return known.id
    const set: CountedSet = {
      id: this.#nextSet++,
      labels,
      fqdnCount: labels.filter((label) => label.kind === 'fqdn').length,
      cidr: longestCidr(labels),
      references: 0,
    }
    this.#sets.set(set.id, set)
    this.#byHash.set(hash, candidates === undefined ? [set] : [...candidates, set])
    for (const label of labels) {
      this.#labelUses.set(label.id, (this.#labelUses.get(label.id) ?? 0) + 1)
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

function makeLabel(id: number, text: string): Label {
  if (text.startsWith('fqdn:')) return { id, text, key: text, kind: 'fqdn', prefix: undefined }
  if (text.startsWith('cidr:')) {
    const parsed = parsePrefix(text.slice(5))
    invariant(parsed.kind === 'ok', `cidr label ${text} names a prefix`)
    return { id, text, key: text, kind: 'cidr', prefix: parsed.prefix }
  }
  const equals = text.indexOf('=')
  return {
    id,
    text,
    key: equals < 0 ? text : text.slice(0, equals),
    kind: 'plain',
    prefix: undefined,
  }
}

/** The label of the longest prefix among the cidr labels. */
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
  let hash = 17
  for (const label of labels) hash = Math.imul(hash ^ label.id, 0x01000193)
  return hash >>> 0
}

function sameLabels(a: readonly Label[], b: readonly Label[]): boolean {
  return a.length === b.length && a.every((label, i) => label === b[i])
}
