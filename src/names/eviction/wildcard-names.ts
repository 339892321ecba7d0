// WildcardNames lists the names that each endpoint knows under each wildcard selector, for the bound `names-per-wildcard`. One row is
// (wildcard at an endpoint, use). The rows of one wildcard at one endpoint are a heap, ordered by when the endpoint last asked for the
// name. Names with an open connection follow the other names. The rows have two bounds: `wildcard-names` for all endpoints together, and
// `wildcard-names-per-endpoint`. If a new name would exceed one of them, the same endpoint loses a name; a heap of the endpoint's
// wildcards selects it. Exact names need no row (docs/spec/semantics 6). The typed arrays need about 24 octets per row.

import { int32Column } from '../../core/tables/columns.ts'
import { invariant } from '../../core/invariant.ts'
import { KeyHeap } from '../../core/tables/key-heap.ts'
import type { LabelSets } from '../../core/labels.ts'
import { put, Slots } from '../../core/tables/slots.ts'
import type { LabelKinds } from './label-kinds.ts'
import type { UseTable } from '../tables/use-table.ts'
import { CONNECTED, HELD, type Candidates } from './candidates.ts'

/** If fewer rows than this are left, namegate counts the rows that a new name needs before it learns the name. */
const ROWS_NEAR = 4096

export type WildcardBounds = Readonly<
  Record<'names-per-wildcard' | 'wildcard-names' | 'wildcard-names-per-endpoint', number>
>

/** One endpoint's wildcards. */
interface Owner {
  readonly endpoint: number
  /** Number of the wildcard's label -> number of the group. */
  readonly groups: Map<number, number>
  /** Numbers of the groups. The key of a group is at most the smallest key among its members. */
  readonly order: KeyHeap
  rows: number
}

/** One wildcard selector's names at one endpoint. */
interface Group {
  readonly owner: Owner
  readonly label: number
  readonly members: KeyHeap
}

export interface WildcardNamesOptions {
  readonly uses: UseTable
  readonly labelSets: LabelSets
  readonly kinds: LabelKinds
  readonly candidates: Candidates
  readonly bounds: WildcardBounds
  /** Returns true if the present batch needs the use. */
  readonly isHeld: (use: number) => boolean
}

export class WildcardNames {
  readonly #options: WildcardNamesOptions
  readonly #slots: Slots
  readonly #use: Int32Array
  readonly #group: Int32Array
  readonly #nextOfUse: Int32Array
  readonly #place: Int32Array
  readonly #placeOfGroup: Int32Array
  /** Groups by number. Number 0 is no group. `#group` has the number for each row. */
  readonly #groups: (Group | undefined)[] = [undefined]
  readonly #freeGroups: number[] = []
  readonly #byEndpoint = new Map<number, Owner>()
  /** Numbers of groups with more names than the bound. `overfull` deletes a group from here when it has few enough names again. */
  readonly #over = new Set<number>()
  /** Uses for which there were no rows, with the labels of their names. `overfull` deletes a use from here when it gets its rows. */
  readonly #unplaced = new Map<number, number>()
  /** How many groups are at their bound. */
  #full = 0
  /** How many endpoints are near their bound of rows. */
  #near = 0
  /** An endpoint with this many rows is near its bound. */
  readonly #nearAt: number

  constructor(options: WildcardNamesOptions) {
    const { bounds } = options
    const capacity = bounds['wildcard-names']
    const rows = capacity + 1
    this.#options = options
    this.#slots = new Slots(capacity)
    this.#nearAt = Math.max(1, bounds['wildcard-names-per-endpoint'] - ROWS_NEAR)
    this.#use = int32Column(rows)
    this.#group = int32Column(rows)
    this.#nextOfUse = int32Column(rows)
    this.#place = int32Column(rows)
    this.#placeOfGroup = int32Column(rows)
  }

  /** True when a new name may need an eviction: a group is at its bound, or few rows are left. */
  get isNear(): boolean {
    return this.#full + this.#near > 0 || this.#left < ROWS_NEAR || this.#nearAt === 1
  }

  /** Number of rows in use. */
  get count(): number {
    return this.#slots.used
  }

  /** The rows of the endpoint that has the most. */
  get largestEndpoint(): number {
    let most = 0
    for (const { rows } of this.#byEndpoint.values()) most = Math.max(most, rows)
    return most
  }

  get #left(): number {
    return this.#slots.capacity - this.#slots.used
  }

  /** True when `overfull` may return a use. */
  get isOverfull(): boolean {
    return this.#over.size + this.#unplaced.size > 0
  }

  /** The names of the wildcard, at one endpoint, that has the most. */
  get largest(): number {
    let most = 0
    for (const group of this.#groups) most = Math.max(most, group?.members.count ?? 0)
    return most
  }

  /** Enters a use under all wildcards of its name's labels. If there are too few rows, enters it under none and notes it for `overfull`. */
  join(use: number, labels: number): void {
    if (this.#options.kinds.wildcardsOf(labels) === 0) return
    if (this.lacks(this.#options.uses.endpoint[use]!, labels) !== undefined) {
      this.#unplaced.set(use, labels)
      return
    }
    for (const label of this.#options.labelSets.get(labels).labels) {
      if (label.kind === 'fqdn') this.#enter(use, label.id)
    }
  }

  /** Removes a use from all its wildcards. */
  leave(use: number): void {
    const { firstMember } = this.#options.uses
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

  /** Returns the bound that leaves an endpoint no rows for one more name with these labels, or undefined if there are enough rows. */
  lacks(
    endpoint: number,
    labels: number,
  ): 'wildcard-names' | 'wildcard-names-per-endpoint' | undefined {
    const rows = this.#options.kinds.wildcardsOf(labels)
    if (rows === 0) return undefined
    const own = (this.#byEndpoint.get(endpoint)?.rows ?? 0) + rows
    if (own > this.#options.bounds['wildcard-names-per-endpoint'])
      return 'wildcard-names-per-endpoint'
    return rows > this.#left ? 'wildcard-names' : undefined
  }

  /**
   * Returns the use of an endpoint to remove first, to free rows for one more name with these labels. Returns 0 if no use can be removed,
   * or if all rows of the endpoint together would not be enough.
   */
  candidateOfEndpoint(endpoint: number, labels: number): number {
    const owner = this.#byEndpoint.get(endpoint)
    const rows = this.#options.kinds.wildcardsOf(labels)
    if (owner === undefined || rows > this.#options.bounds['wildcard-names-per-endpoint']) return 0
    if (rows > this.#left + owner.rows) return 0
    const number = this.#options.candidates.find(owner.order, (each) => this.#keyOfGroup(each))
    const group = this.#groups[number]
    return group === undefined ? 0 : this.#candidateOf(group)
  }

  /** Call when a use got its first open connection, or when its last one ended. */
  connectedChanged(use: number): void {
    for (let row = this.#options.uses.firstMember[use]!; row !== 0; row = this.#nextOfUse[row]!) {
      const number = this.#group[row]!
      const group = this.#groups[number]
      if (group === undefined) continue
      group.members.set(row, this.#askedKey(use))
      group.owner.order.set(number, group.members.topKey)
    }
  }

  /**
   * Returns the use to remove before the endpoint learns one more name with these labels. Returns 0 if no use has to be removed, and
   * undefined if one would have to be removed but none can be.
   */
  candidateFor(endpoint: number, labels: number): number | undefined {
    const groups = this.#byEndpoint.get(endpoint)?.groups
    if (groups === undefined || this.#options.kinds.wildcardsOf(labels) === 0) return 0
    for (const label of this.#options.labelSets.get(labels).labels) {
      const group = this.#groups[groups.get(label.id) ?? 0]
      if (group === undefined || group.members.count < this.#max) continue
      const use = this.#candidateOf(group)
      return use === 0 ? undefined : use
    }
    return 0
  }

  /** Returns a use to remove because names got other labels, and the bound that was exceeded. Undefined: no bound is exceeded. */
  overfull(): { readonly use: number; readonly bound: keyof WildcardBounds } | undefined {
    for (const [use, labels] of this.#unplaced) {
      const endpoint = this.#options.uses.endpoint[use]!
      const bound = this.lacks(endpoint, labels)
      if (bound === undefined) {
        this.#unplaced.delete(use)
        this.join(use, labels)
        continue
      }
      const other = this.candidateOfEndpoint(endpoint, labels)
      const isFirst = other === 0 || this.#askedKey(use) < this.#askedKey(other)
      if (!isFirst) return { use: other, bound }
      if (!this.#options.isHeld(use)) return { use, bound }
    }
    for (const number of this.#over) {
      const group = this.#groups[number]
      if (group !== undefined && group.members.count > this.#max) {
        const use = this.#candidateOf(group)
        if (use !== 0) return { use, bound: 'names-per-wildcard' }
      } else {
        this.#over.delete(number)
      }
    }
    return undefined
  }

  get #max(): number {
    return this.#options.bounds['names-per-wildcard']
  }

  #keyOfGroup(number: number): number {
    const group = this.#groups[number]
    const use = group === undefined ? 0 : this.#candidateOf(group)
    return use === 0 ? HELD : this.#askedKey(use)
  }

  #candidateOf(group: Group): number {
    return this.#use[this.#options.candidates.find(group.members, (row) => this.#keyOf(row))]!
  }

  #keyOf(row: number): number {
    const use = this.#use[row]!
    return this.#options.isHeld(use) ? HELD : this.#askedKey(use)
  }

  #askedKey(use: number): number {
    const { uses } = this.#options
    return uses.asked[use]! + (uses.connected[use] === 0 ? 0 : CONNECTED)
  }

  #enter(use: number, label: number): void {
    const { uses } = this.#options
    const row = this.#slots.take()
    invariant(row !== 0, 'there is room where a name is entered')
    const number = this.#groupOf(uses.endpoint[use]!, label)
    const group = this.#groups[number]
    invariant(group !== undefined, 'a wildcard that was found is there')
    this.#use[row] = use
    this.#group[row] = number
    put(this.#nextOfUse, row, uses.firstMember[use]!)
    uses.firstMember[use] = row
    group.members.add(row, this.#askedKey(use))
    const { owner } = group
    owner.order.set(number, group.members.topKey)
    if (++owner.rows === this.#nearAt) this.#near++
    if (group.members.count === this.#max) this.#full++
    if (group.members.count > this.#max) this.#over.add(number)
  }

  #remove(number: number, group: Group, row: number): void {
    const { owner, members, label } = group
    members.remove(row)
    if (owner.rows-- === this.#nearAt) this.#near--
    if (members.count === this.#max - 1) this.#full--
    if (members.count > 0) return
    owner.order.remove(number)
    owner.groups.delete(label)
    if (owner.groups.size === 0) this.#byEndpoint.delete(owner.endpoint)
    this.#groups[number] = undefined
    this.#freeGroups.push(number)
    this.#over.delete(number)
  }

  #groupOf(endpoint: number, label: number): number {
    let owner = this.#byEndpoint.get(endpoint)
    if (owner === undefined) {
      owner = { endpoint, groups: new Map(), order: new KeyHeap(this.#placeOfGroup), rows: 0 }
      this.#byEndpoint.set(endpoint, owner)
    }
    const known = owner.groups.get(label)
    if (known !== undefined) return known
    const number = this.#freeGroups.pop() ?? this.#groups.length
    this.#groups[number] = { owner, label, members: new KeyHeap(this.#place) }
    owner.groups.set(label, number)
    owner.order.add(number, HELD - 1)
    return number
  }
}
