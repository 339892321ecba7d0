// Proposes a version of each file: its last good version, or its version in force while the last good one contradicts other files.
// `SourceFiles` owns a Proposal. While all files agree, `proposed` has the good version of each draft. `propose` looks only at the drafts
// that were set, if no other draft has their keys, and else at all files. `accept` looks at the files whose proposal changed.
// An object of a cluster is treated as a file that yields: while it contradicts a real file, no version of it is in force.

import type { Fault } from '../../core/errors.ts'
import { JoinedLists } from '../../core/tables/joined-lists.ts'

export interface ProposalOptions<Item> {
  /** Returns the faults between the items of all files. */
  readonly together: (items: readonly Item[]) => readonly Fault[]
  /**
   * Returns the key of an item. Items of two files contradict each other only if they have the same key; an item without a key contradicts
   * none. Absent: items contradict each other in other ways too.
   */
  readonly keyOf?: (item: Item) => string | undefined
  /** Returns true if every file that does not yield has precedence over this file. Default: returns false. */
  readonly yields?: (path: string) => boolean
}

/** The version of a file that was read last. */
export interface Draft<Item> {
  readonly digest: string
  /** Items of the last version without faults. */
  readonly good: readonly Item[]
  readonly faults: readonly Fault[]
}

type ByFile<Value> = ReadonlyMap<string, Value>

export class Proposal<Item> {
  readonly #options: ProposalOptions<Item>
  readonly #drafts = new Map<string, Draft<Item>>()
  /** Files that contradict other files, with the faults. */
  #held: ByFile<readonly Fault[]> = new Map()
  #proposed = new JoinedLists<Item>()
  readonly #inForce = new JoinedLists<Item>()
  /** Files whose draft changed since the last proposal. */
  readonly #touched = new Set<string>()
  /** Files whose proposal differs from their items in force. Undefined while this is not known. */
  #ahead: Set<string> | undefined = new Set()
  /** By key: how many drafts have a good item with this key. */
  readonly #owners = new Map<string, number>()
  /** True if all files agreed in the last proposal. */
  #agrees = false
  /** Files whose draft has faults. */
  readonly #faulty = new Set<string>()

  constructor(options: ProposalOptions<Item>) {
    this.#options = options
  }

  /** The drafts by path. */
  get drafts(): ByFile<Draft<Item>> {
    return this.#drafts
  }

  /** Files that contradict other files, with the faults. */
  get held(): ByFile<readonly Fault[]> {
    return this.#held
  }

  get inForce(): JoinedLists<Item> {
    return this.#inForce
  }

  get proposed(): JoinedLists<Item> {
    return this.#proposed
  }

  /** The faults of the present files. */
  get faults(): readonly Fault[] {
    if (this.#faulty.size === 0 && this.#held.size === 0) return []
    return [...this.#drafts.keys()].flatMap((path) => this.faultsOf(path))
  }

  faultsOf(path: string): readonly Fault[] {
    return [...(this.#drafts.get(path)?.faults ?? []), ...(this.#held.get(path) ?? [])]
  }

  /** Sets the draft of a file. `draft` undefined: the file was removed. Returns true if the file has a draft now or had one before. */
  set(path: string, draft: Draft<Item> | undefined): boolean {
    const before = this.#drafts.get(path)
    this.#countOwners(before, -1)
    this.#countOwners(draft, 1)
    if (draft === undefined) this.#drafts.delete(path)
    else this.#drafts.set(path, draft)
    if (draft !== undefined && draft.faults.length > 0) this.#faulty.add(path)
    else this.#faulty.delete(path)
    this.#touched.add(path)
    return before !== undefined || draft !== undefined
  }

  /** Proposes the last good version of every file that does not contradict others. */
  propose(): void {
    const touched = [...this.#touched]
    this.#touched.clear()
    if (this.#agrees && touched.every((path) => this.#isUncontested(path))) {
      for (const path of touched) this.#advance(path)
      return
    }
    this.proposeAll()
  }

  /** Puts the proposals in force. Returns true if the items in force have changed. */
  accept(): boolean {
    const ahead = this.#ahead ?? this.#findAhead()
    if (this.#ahead === undefined) this.#inForce.copy(this.#proposed)
    else if (ahead.size > 0) this.#inForce.follow(this.#proposed, ahead)
    this.#ahead = new Set()
    return ahead.size > 0
  }

  /** True if the file still agrees with all other files. All files must have agreed before. */
  #isUncontested(path: string): boolean {
    const { keyOf } = this.#options
    const draft = this.#drafts.get(path)
    if (draft?.good === this.#proposed.get(path)) return true
    if (keyOf === undefined) return false
    return this.#keysOf(draft).every((key) => this.#owners.get(key) === 1)
  }

  #keysOf(draft: Draft<Item> | undefined): readonly string[] {
    const { keyOf } = this.#options
    if (keyOf === undefined || draft === undefined) return []
    return [...new Set(draft.good.map(keyOf))].filter((key) => key !== undefined)
  }

  #countOwners(draft: Draft<Item> | undefined, by: 1 | -1): void {
    for (const key of this.#keysOf(draft)) {
      const count = (this.#owners.get(key) ?? 0) + by
      if (count === 0) this.#owners.delete(key)
      else this.#owners.set(key, count)
    }
  }

  /** Proposes the current version of one file. */
  #advance(path: string): void {
    const items = this.#drafts.get(path)?.good
    this.#proposed.set(path, items)
    if (items === this.#inForce.get(path)) this.#ahead?.delete(path)
    else this.#ahead?.add(path)
  }

  proposeAll(): void {
    this.#ahead = undefined
    const held = new Map<string, readonly Fault[]>()
    for (;;) {
      const proposal = this.#proposalWithout(held)
      const faults = this.#options.together(proposal.all)
      const free = [...this.#drafts.keys()].filter((path) => {
        const isNew = proposal.get(path) !== this.#inForce.get(path)
        return !held.has(path) && (isNew || this.#yields(path))
      })
      const blamed = free.filter((path) => faults.some(({ position }) => position.file === path))
      // The versions in force agree with each other, or yield. So the loop ends, at the latest when it proposes no new version.
      if (faults.length === 0 || free.length === 0) {
        this.#agrees = faults.length === 0 && held.size === 0
        this.#held = held
        this.#proposed = proposal
        return
      }
      for (const path of blamed.length > 0 ? blamed : free) {
        const own = faults.filter(({ position }) => position.file === path)
        held.set(path, own.length > 0 ? own : faults)
      }
    }
  }

  #proposalWithout(held: ByFile<unknown>): JoinedLists<Item> {
    const proposal = new JoinedLists<Item>()
    const yielding: string[] = []
    for (const [path, { good }] of this.#drafts) {
      if (this.#yields(path)) yielding.push(path)
      else proposal.set(path, held.has(path) ? this.#inForce.get(path) : good)
    }
    // These come last, because a fault is at the later of two items that contradict each other.
    for (const path of yielding) {
      proposal.set(path, held.has(path) ? undefined : this.#drafts.get(path)?.good)
    }
    return proposal
  }

  #yields(path: string): boolean {
    return this.#options.yields?.(path) ?? false
  }

  #findAhead(): Set<string> {
    const names = new Set([...this.#proposed.names(), ...this.#inForce.names()])
    return new Set(
      [...names].filter((path) => this.#proposed.get(path) !== this.#inForce.get(path)),
    )
  }
}
