// Which names an endpoint knows under each wildcard selector, so that the bound `names-per-wildcard` can be held: one row
// (wildcard of an endpoint, use), in a heap by when the name was asked last, those under an open connection behind the others.
// A name that a selector without a star matches too is not counted (SEMANTICS 6). Typed arrays, about 24 octets a row.

import { invariant } from '../core/invariant.ts'
import { KeyHeap } from '../core/key-heap.ts'
import type { LabelSets } from '../core/labels.ts'
import { put, Slots } from '../core/slots.ts'
import type { UseTable } from './use-table.ts'
import { CONNECTED, HELD, type Victims } from './victims.ts'

/** With fewer rows left it is looked how many a name needs. */
const ROWS_NEAR = 4096

/** One wildcard selector's names at one endpoint. */
interface Group {
  readonly endpoint: number
  readonly label: number
  readonly members: KeyHeap
}

export interface WildcardNamesOptions {
  readonly uses: UseTable
  readonly labelSets: LabelSets
  readonly victims: Victims
  /** `limits.names-per-wildcard`. */
  readonly max: number
  /** Rows in all: a name can be under several wildcards. */
  readonly capacity: number
  /** Whether the batch at hand needs a use. */
  readonly isHeld: (use: number) => boolean
}

export class WildcardNames {
  readonly #in: WildcardNamesOptions
  readonly #slots: Slots
  readonly #use: Int32Array
  readonly #group: Int32Array
  readonly #nextOfUse: Int32Array
  readonly #place: Int32Array
  /** By number, which their rows have; 0 is none. */
  readonly #groups: (Group | undefined)[] = [undefined]
  readonly #freeGroups: number[] = []
  /** Endpoint -> label -> number of the group. */
  readonly #byEndpoint = new Map<number, Map<number, number>>()
  /** Groups with more names than the bound, until `overfull` is asked. */
  readonly #over = new Set<number>()
  /** Uses that found no row, until `takeOverfull` is asked. */
  readonly #unplaced = new Set<number>()
  #full = 0
  /** The label set that was looked at last, and whether names that have it are counted: most have the same. */
  #lastLabels = -1
  #isLastCounted = false

  constructor(options: WildcardNamesOptions) {
    const rows = options.capacity + 1
    this.#in = options
    this.#slots = new Slots(options.capacity)
    this.#use = new Int32Array(rows)
    this.#group = new Int32Array(rows)
    this.#nextOfUse = new Int32Array(rows)
    this.#place = new Int32Array(rows)
  }

  /** Whether a new name could need room: a group is at the bound, or the rows are nearly used up. */
  get isNear(): boolean {
    return this.#full > 0 || this.#left < ROWS_NEAR
  }

  get #left(): number {
    return this.#slots.capacity - this.#slots.used
  }

  /** Whether `takeOverfull` may have something. */
  get isOverfull(): boolean {
    return this.#over.size + this.#unplaced.size > 0
  }

  /** Names of the wildcard that has most. */
  get largest(): number {
    let most = 0
    for (const group of this.#groups) most = Math.max(most, group?.members.count ?? 0)
    return most
  }

  /** Enters a use under the wildcards of its name's labels. */
  join(use: number, labels: number): void {
    if (!this.#isCounted(labels)) return
    for (const label of this.#in.labelSets.get(labels).labels) {
      if (label.kind === 'fqdn') this.#enter(use, label.id)
    }
  }

  /** Takes a use out everywhere. */
  leave(use: number): void {
    const { firstMember } = this.#in.uses
    for (let row = firstMember[use]!; row !== 0;) {
      const next = this.#nextOfUse[row]!
      const number = this.#group[row]!
      const group = this.#groups[number]
      if (group !== undefined) this.#remove(number, group, row)
      this.#slots.free(row)
      row = next
    }
    firstMember[use] = 0
    this.#unplaced.delete(use)
  }

  /** Whether there are rows for one more name with these labels. */
  hasRows(labels: number): boolean {
    return this.#left >= this.#in.labelSets.get(labels).fqdnCount
  }

  /** A use came under an open connection, or is no longer. */
  connectedChanged(use: number): void {
    for (let row = this.#in.uses.firstMember[use]!; row !== 0; row = this.#nextOfUse[row]!) {
      this.#groups[this.#group[row]!]?.members.set(row, this.#askedKey(use))
    }
  }

  /**
   * The use that must go before the endpoint may know one more name with these labels; 0: none, `undefined`: something
   * must and nothing may.
   */
  victimFor(endpoint: number, labels: number): number | undefined {
    const groups = this.#byEndpoint.get(endpoint)
    if (groups === undefined || !this.#isCounted(labels)) return 0
    for (const label of this.#in.labelSets.get(labels).labels) {
      const group = this.#groups[groups.get(label.id) ?? 0]
      if (group === undefined || group.members.count < this.#in.max) continue
      const use = this.#victimOf(group)
      return use === 0 ? undefined : use
    }
    return 0
  }

  /** A use that must go because selectors changed and a wildcard has too many names now; 0 when there is none. */
  takeOverfull(): number {
    if (!this.isOverfull) return 0
    for (const use of this.#unplaced) if (!this.#in.isHeld(use)) return use
    for (const number of this.#over) {
      const group = this.#groups[number]
      if (group !== undefined && group.members.count > this.#in.max) {
        const use = this.#victimOf(group)
        if (use !== 0) return use
      } else {
        this.#over.delete(number)
      }
    }
    return 0
  }

  #victimOf(group: Group): number {
    return this.#use[this.#in.victims.find(group.members, (row) => this.#keyOf(row))]!
  }

  #keyOf(row: number): number {
    const use = this.#use[row]!
    return this.#in.isHeld(use) ? HELD : this.#askedKey(use)
  }

  #askedKey(use: number): number {
    const { uses } = this.#in
    return uses.asked[use]! + (uses.connected[use] === 0 ? 0 : CONNECTED)
  }

  /** Names that only selectors with a star match. */
  #isCounted(labels: number): boolean {
    if (labels === this.#lastLabels) return this.#isLastCounted
    const set = this.#in.labelSets.get(labels)
    const isOfStar = set.labels.every(({ kind, text }) => kind !== 'fqdn' || text.includes('*'))
    this.#lastLabels = labels
    this.#isLastCounted = set.fqdnCount > 0 && isOfStar
    return this.#isLastCounted
  }

  #enter(use: number, label: number): void {
    const { uses, max } = this.#in
    const row = this.#slots.take()
    if (row === 0) {
      this.#unplaced.add(use)
      return
    }
    const number = this.#groupOf(uses.endpoint[use]!, label)
    const group = this.#groups[number]
    invariant(group !== undefined, 'a wildcard that was found is there')
    this.#use[row] = use
    this.#group[row] = number
    put(this.#nextOfUse, row, uses.firstMember[use]!)
    uses.firstMember[use] = row
    group.members.add(row, this.#askedKey(use))
    if (group.members.count === max) this.#full++
    if (group.members.count > max) this.#over.add(number)
  }

  #remove(number: number, group: Group, row: number): void {
    group.members.remove(row)
    if (group.members.count === this.#in.max - 1) this.#full--
    if (group.members.count > 0) return
    const groups = this.#byEndpoint.get(group.endpoint)
    groups?.delete(group.label)
    if (groups?.size === 0) this.#byEndpoint.delete(group.endpoint)
    this.#groups[number] = undefined
    this.#freeGroups.push(number)
    this.#over.delete(number)
  }

  #groupOf(endpoint: number, label: number): number {
    let groups = this.#byEndpoint.get(endpoint)
    if (groups === undefined) this.#byEndpoint.set(endpoint, (groups = new Map()))
    const known = groups.get(label)
    if (known !== undefined) return known
    const number = this.#freeGroups.pop() ?? this.#groups.length
    this.#groups[number] = { endpoint, label, members: new KeyHeap(this.#place) }
    groups.set(label, number)
    return number
  }
}
