// What the files of one kind (policies, endpoints, resources) ask for, and which part of that is in force. A
// file with a fault keeps its last good version; files that contradict each other keep theirs until they
// agree. What is proposed comes into force when `accept` says so, all files at once (SEMANTICS 2).

import { createHash } from 'node:crypto'
import type { Clock } from '../core/clock.ts'
import type { Fault } from '../core/errors.ts'
import { JoinedLists } from '../core/joined-lists.ts'
import type { PlacedPath } from '../config/config.ts'
import { readTextFile } from '../config/files.ts'
import { pathFaults, scanFiles, signatureOf } from './scan-files.ts'
import { SettledFiles } from './settled-files.ts'

export interface Parsed<Item> {
  readonly items: readonly Item[]
  readonly faults: readonly Fault[]
}

export interface SourceFile<Item> {
  readonly path: string
  /** In force: of the file as it is, or of its last good version. */
  readonly items: readonly Item[]
  readonly state: 'in-force' | 'last-good' | 'rejected'
  readonly faults: readonly Fault[]
}

export interface SourceFilesOptions<Item> {
  readonly paths: readonly PlacedPath[]
  readonly clock: Clock
  readonly parse: (text: string, file: string) => Parsed<Item>
  /** What is wrong with the items of all files together. */
  readonly together: (items: readonly Item[]) => readonly Fault[]
  /** Items of a file that is broken at the start: of the text that was in force last. Absent: there are none. */
  readonly standIn?: (path: string) => readonly Item[] | undefined
  /** Whether a file whose items become others can't contradict other files if it did not before. Default: no. */
  readonly isWithin?: (after: readonly Item[], before: readonly Item[]) => boolean
}

/** A file as it was read last. */
interface Draft<Item> {
  readonly digest: string
  /** Of the last version without faults. */
  readonly good: readonly Item[]
  readonly faults: readonly Fault[]
}

/** Items that the program gives under a name, as a file that is always whole. */
export interface GivenItems<Item> {
  /** Equal for equal items: giving them again changes nothing. */
  readonly digest: string
  readonly items: readonly Item[]
}

/** What was given and is proposed now. */
export interface Giving {
  /** What speaks against it: it contradicts what else is in force. */
  readonly faults: readonly Fault[]
  /** Proposes what was proposed before. */
  readonly undo: () => void
}

type ByFile<Value> = ReadonlyMap<string, Value>

export class SourceFiles<Item> {
  readonly #options: SourceFilesOptions<Item>
  readonly #settled = new SettledFiles()
  readonly #drafts = new Map<string, Draft<Item>>()
  /** Files that contradict others, with what is wrong. */
  #held: ByFile<readonly Fault[]> = new Map()
  /** Files that were broken at the start. */
  readonly #stoodIn = new Set<string>()
  #isStarting = false
  #isHeard = true
  /** Folders whose files stay as they were, because nobody can look into them. */
  #lost: readonly string[] = []
  #proposed = new JoinedLists<Item>()
  readonly #inForce = new JoinedLists<Item>()
  /** Files whose draft is another one since the last proposal. */
  readonly #touched = new Set<string>()
  /** Files that are proposed otherwise than in force; undefined when that has to be found out. */
  #ahead: Set<string> | undefined = new Set()
  /** Whether no file contradicts another one in the last proposal. */
  #agrees = false
  /** Files whose draft has faults. */
  readonly #faulty = new Set<string>()

  constructor(options: SourceFilesOptions<Item>) {
    this.#options = options
  }

  /** In force. */
  get items(): readonly Item[] {
    return this.#inForce.all
  }

  /** What is to be in force next. */
  get proposed(): readonly Item[] {
    return this.#proposed.all
  }

  /** What is wrong with the files as they are now. */
  get faults(): readonly Fault[] {
    if (this.#faulty.size === 0 && this.#held.size === 0) return []
    return [...this.#drafts.keys()].flatMap((path) => this.#faultsOf(path))
  }

  /** Folders that nobody can look into any more; what their files said stays in force. */
  get folderFaults(): readonly Fault[] {
    return this.#lost.map(lostFault)
  }

  get files(): readonly SourceFile<Item>[] {
    const paths = new Set([...this.#drafts.keys(), ...this.#inForce.names()])
    return [...paths].map((path) => {
      const items = this.#inForce.get(path) ?? []
      const faults = this.#faultsOf(path)
      const isTaken = this.#proposed.get(path) === this.#inForce.get(path)
      const old = items.length > 0 ? 'last-good' : 'rejected'
      return { path, items, state: faults.length === 0 && isTaken ? 'in-force' : old, faults }
    })
  }

  /** Whether every configured path could be looked at last time. */
  get isHeard(): boolean {
    return this.#isHeard
  }

  /** Whether a change waits until it has been quiet for long enough. */
  get unsettled(): boolean {
    return this.#settled.unsettled
  }

  /** Reads everything; returns all that is wrong, configured paths included, but what another text stands in for. */
  loadAll(): readonly Fault[] {
    const { paths } = this.#options
    const scan = scanFiles(paths)
    this.#isHeard = scan.isWhole
    this.#settled.accept(scan)
    this.#isStarting = true
    for (const path of scan.files.keys()) this.#read(path)
    this.#isStarting = false
    this.#propose()
    const found = [...this.#drafts.keys()].flatMap((path) => {
      return this.#stoodIn.has(path) ? (this.#held.get(path) ?? []) : this.#faultsOf(path)
    })
    return [...pathFaults(paths), ...found]
  }

  /** Whether there is such a file, as it is or as it was. */
  has(path: string): boolean {
    return this.#drafts.has(path)
  }

  /** Looks at the files and reads those whose change has settled; whether what they ask for may be another. */
  poll(): boolean {
    const { paths, clock } = this.#options
    const scan = scanFiles(paths)
    this.#isHeard = scan.isWhole
    const settled = this.#settled.look(scan, clock.now())
    const lost = this.#settled.lostFolders(scan)
    let changed = lost.join('\n') !== this.#lost.join('\n')
    this.#lost = lost
    for (const { kind, path } of settled) {
      if (kind === 'removed') changed = this.#setDraft(path, undefined) || changed
      else changed = this.#read(path, scan.files.get(path)?.signature) || changed
    }
    if (changed) this.#propose()
    return changed
  }

  /** Takes what the program gives, or takes back (undefined), by name. */
  give(given: ReadonlyMap<string, GivenItems<Item> | undefined>): Giving {
    const names = [...given.keys()]
    const before = names.map((name) => [name, this.#drafts.get(name)] as const)
    for (const [name, each] of given) {
      if (each === undefined) this.#setDraft(name, undefined)
      else if (this.#drafts.get(name)?.digest !== each.digest) {
        this.#setDraft(name, { digest: each.digest, good: each.items, faults: [] })
      }
    }
    this.#propose()
    const undo = (): void => {
      for (const [name, draft] of before) this.#setDraft(name, draft)
      this.#propose()
    }
    return { faults: names.flatMap((name) => this.#held.get(name) ?? []), undo }
  }

  /** Whether files contradict others, or what `together` knows besides. */
  get hasHeld(): boolean {
    return this.#held.size > 0
  }

  /** Looks again at what contradicts what. */
  proposeAgain(): void {
    this.#proposeAll()
  }

  /** From the next `poll` on all files are read again, whether they look changed or not. */
  forget(): void {
    this.#settled.forget()
  }

  /** What is proposed is in force now; whether that is anything else than before. */
  accept(): boolean {
    const ahead = this.#ahead ?? this.#findAhead()
    if (this.#ahead === undefined) this.#inForce.copy(this.#proposed)
    else if (ahead.size > 0) this.#inForce.follow(this.#proposed, ahead)
    this.#ahead = new Set()
    return ahead.size > 0
  }

  #standIn(path: string): readonly Item[] {
    const items = this.#isStarting ? this.#options.standIn?.(path) : undefined
    if (items !== undefined) this.#stoodIn.add(path)
    return items ?? []
  }

  #faultsOf(path: string): readonly Fault[] {
    return [...(this.#drafts.get(path)?.faults ?? []), ...(this.#held.get(path) ?? [])]
  }

  /** Reads a file; false when it is as before or was changed again while it was read: that settles later. */
  #read(path: string, signature?: string): boolean {
    const read = readTextFile(path)
    if (signature !== undefined && signatureOf(path) !== signature) return false
    const before = this.#drafts.get(path)
    const digest = read.kind === 'ok' ? digestOf(read.text) : 'unreadable'
    if (before?.digest === digest && digest !== 'unreadable') return false
    const { items, faults } =
      read.kind === 'ok'
        ? this.#options.parse(read.text, path)
        : { items: [], faults: [read.fault] }
    const good = faults.length === 0 ? items : (before?.good ?? this.#standIn(path))
    return this.#setDraft(path, { digest, good, faults })
  }

  /** Undefined: the file is gone. Whether there was, or is, one. */
  #setDraft(path: string, draft: Draft<Item> | undefined): boolean {
    const had = this.#drafts.has(path)
    if (draft === undefined) this.#drafts.delete(path)
    else this.#drafts.set(path, draft)
    if (draft !== undefined && draft.faults.length > 0) this.#faulty.add(path)
    else this.#faulty.delete(path)
    this.#touched.add(path)
    return had || draft !== undefined
  }

  /** Makes the proposal: every file's last good version, but for files that contradict others. */
  #propose(): void {
    const touched = [...this.#touched]
    this.#touched.clear()
    if (this.#agrees && touched.every((path) => this.#isUncontested(path))) {
      for (const path of touched) this.#advance(path)
      return
    }
    this.#proposeAll()
  }

  /** Whether the file agrees with all others as it is now, if it did before. */
  #isUncontested(path: string): boolean {
    const { isWithin } = this.#options
    const draft = this.#drafts.get(path)
    const before = this.#proposed.get(path)
    if (draft?.good === before) return true
    return isWithin?.(draft?.good ?? [], before ?? []) ?? false
  }

  /** Proposes one file as it is now. */
  #advance(path: string): void {
    const items = this.#drafts.get(path)?.good
    this.#proposed.set(path, items)
    if (items === this.#inForce.get(path)) this.#ahead?.delete(path)
    else this.#ahead?.add(path)
  }

  #proposeAll(): void {
    this.#ahead = undefined
    const held = new Map<string, readonly Fault[]>()
    for (;;) {
      const proposal = this.#proposalWithout(held)
      const faults = this.#options.together(proposal.all)
      const free = [...this.#drafts.keys()].filter(
        (path) => !held.has(path) && proposal.get(path) !== this.#inForce.get(path),
      )
      const blamed = free.filter((path) => faults.some(({ position }) => position.file === path))
      // What was in force without them agreed, so this ends at the latest when nothing new is left.
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
    for (const [path, { good }] of this.#drafts) {
      proposal.set(path, held.has(path) ? this.#inForce.get(path) : good)
    }
    return proposal
  }

  #findAhead(): Set<string> {
    const names = new Set([...this.#proposed.names(), ...this.#inForce.names()])
    return new Set(
      [...names].filter((path) => this.#proposed.get(path) !== this.#inForce.get(path)),
    )
  }
}

function lostFault(folder: string): Fault {
  const message = 'cannot look into this folder any more: what its files said stays in force'
  return { position: { file: folder, line: 1, column: 1 }, message }
}

/** Texts up to this length are known again by a hash. */
const HASHED_MAX = 65_536

/** Equal for equal texts. A long one stands for itself: comparing it costs a tenth of hashing it. */
function digestOf(text: string): string {
  return text.length > HASHED_MAX ? text : createHash('sha256').update(text).digest('base64')
}
