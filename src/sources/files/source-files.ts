// What the files of one kind (policies, endpoints, resources) ask for, and which part of that is in force. A
// file with a fault keeps its last good version; files that contradict each other keep theirs until they
// agree. What is proposed comes into force when `accept` says so, all files at once (docs/spec/semantics 2).

import { hash } from 'node:crypto'
import type { Clock } from '../../core/clock.ts'
import type { Fault } from '../../core/errors.ts'
import type { PlacedPath } from '../../config/config.ts'
import { readTextFile } from '../../config/files.ts'
import { letYoungGrow } from '../../native/young-generation.ts'
import type { Standing } from './good-texts.ts'
import { Proposal, type ProposalOptions } from './proposal.ts'
import { FileScan, signatureOf } from './scan-files.ts'
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

export interface SourceFilesOptions<Item> extends ProposalOptions<Item> {
  readonly paths: readonly PlacedPath[]
  readonly clock: Clock
  readonly parse: (text: string, file: string) => Parsed<Item>
  /** Items of a file that is broken at the start: of the text that was in force last. Absent: there are none. */
  readonly standIn?: (path: string) => readonly Item[] | undefined
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

/** Characters read in one look, of which what is made takes some ten times as much. */
const MUCH = 2 ** 20

export class SourceFiles<Item> {
  readonly #options: SourceFilesOptions<Item>
  readonly #settled = new SettledFiles()
  readonly #proposal: Proposal<Item>
  /** Files that were broken at the start. */
  readonly #stoodIn = new Set<string>()
  #isStarting = false
  /** The look that is under way. */
  #scan: FileScan | undefined
  /** Characters read in this look. */
  #length = 0
  #isHeard = true
  #missing: readonly string[] = []
  /** Folders whose files stay as they were, because nobody can look into them. */
  #lost: readonly string[] = []

  constructor(options: SourceFilesOptions<Item>) {
    this.#options = options
    this.#proposal = new Proposal(options)
  }

  /** In force. */
  get items(): readonly Item[] {
    return this.#proposal.inForce.all
  }

  /** What is to be in force next. */
  get proposed(): readonly Item[] {
    return this.#proposal.proposed.all
  }

  /** What is wrong with the files as they are now. */
  get faults(): readonly Fault[] {
    return this.#proposal.faults
  }

  /** Folders that nobody can look into any more; what their files said stays in force. */
  get folderFaults(): readonly Fault[] {
    return this.#lost.map(lostFault)
  }

  get files(): readonly SourceFile<Item>[] {
    const { drafts, proposed, inForce } = this.#proposal
    const paths = new Set([...drafts.keys(), ...inForce.names()])
    return [...paths].map((path) => {
      const items = inForce.get(path) ?? []
      const faults = this.#proposal.faultsOf(path)
      const isTaken = proposed.get(path) === inForce.get(path)
      const old = items.length > 0 ? 'last-good' : 'rejected'
      return { path, items, state: faults.length === 0 && isTaken ? 'in-force' : old, faults }
    })
  }

  /** Configured files that went away: what they said is in force no more. */
  get goneFiles(): readonly string[] {
    return this.#missing
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
    const { paths, clock } = this.#options
    const scan = new FileScan(paths)
    scan.step(clock, Number.POSITIVE_INFINITY)
    this.#isHeard = scan.isWhole
    this.#settled.accept(scan)
    this.#isStarting = true
    this.#length = 0
    for (const path of scan.files.keys()) this.#read(path)
    this.#isStarting = false
    this.#proposal.propose()
    const found = [...this.#proposal.drafts.keys()].flatMap((path) => {
      return this.#stoodIn.has(path)
        ? (this.#proposal.held.get(path) ?? [])
        : this.#proposal.faultsOf(path)
    })
    return [...scan.faults, ...found]
  }

  /** What is in force of a file once that is accepted. */
  standingOf(path: string): Standing {
    if (!this.#proposal.drafts.has(path)) return 'gone'
    return this.#proposal.held.has(path) ? 'held' : 'in-force'
  }

  /** Whether a file is to be another than in force. */
  isAhead(path: string): boolean {
    const { proposed, inForce } = this.#proposal
    return proposed.get(path) !== inForce.get(path)
  }

  /** Looks at the files until the time is over; true when it has looked at all: then `poll` goes by what was seen. */
  scan(until: number): boolean {
    const { clock } = this.#options
    this.#scan ??= this.#newScan()
    return this.#scan.step(clock, until)
  }

  /** Looks at the files and reads those whose change has settled; whether what they ask for may be another. */
  poll(): boolean {
    const { clock } = this.#options
    const scan = this.#scan ?? this.#newScan()
    scan.step(clock, Number.POSITIVE_INFINITY)
    this.#scan = undefined
    this.#length = 0
    this.#isHeard = scan.isWhole
    const settled = this.#settled.look(scan, clock.now())
    const lost = this.#settled.lostFolders(scan)
    let changed = lost.join('\n') !== this.#lost.join('\n')
    this.#lost = lost
    for (const { kind, path } of settled) {
      if (kind === 'removed') changed = this.#proposal.set(path, undefined) || changed
      else changed = this.#read(path, scan.files.get(path)?.signature) || changed
    }
    // One that has just gone may come back within the time that an edit takes.
    this.#missing = scan.missing.filter(
      (path) => !this.#proposal.drafts.has(path) && !lost.includes(path),
    )
    if (changed) this.#proposal.propose()
    return changed
  }

  /** Takes what the program gives, or takes back (undefined), by name. */
  give(given: ReadonlyMap<string, GivenItems<Item> | undefined>): Giving {
    const names = [...given.keys()]
    const before = names.map((name) => [name, this.#proposal.drafts.get(name)] as const)
    for (const [name, each] of given) {
      if (each === undefined) this.#proposal.set(name, undefined)
      else if (this.#proposal.drafts.get(name)?.digest !== each.digest) {
        this.#proposal.set(name, { digest: each.digest, good: each.items, faults: [] })
      }
    }
    this.#proposal.propose()
    const undo = (): void => {
      for (const [name, draft] of before) this.#proposal.set(name, draft)
      this.#proposal.propose()
    }
    return { faults: names.flatMap((name) => this.#proposal.held.get(name) ?? []), undo }
  }

  /** Whether files contradict others, or what `together` knows besides. */
  get hasHeld(): boolean {
    return this.#proposal.held.size > 0
  }

  /** Looks again at what contradicts what. */
  proposeAgain(): void {
    this.#proposal.proposeAll()
  }

  /** From the next `poll` on all files are read again, whether they look changed or not. */
  forget(): void {
    this.#settled.forget()
  }

  /** What is proposed is in force now; whether that is anything else than before. */
  accept(): boolean {
    return this.#proposal.accept()
  }

  #newScan(): FileScan {
    return new FileScan(this.#options.paths, (path) => this.#proposal.drafts.has(path))
  }

  #standIn(path: string): readonly Item[] {
    const items = this.#isStarting ? this.#options.standIn?.(path) : undefined
    if (items !== undefined) this.#stoodIn.add(path)
    return items ?? []
  }

  #noteLength({ length }: string): void {
    const wasMuch = this.#length > MUCH
    this.#length += length
    if (!wasMuch && this.#length > MUCH) letYoungGrow()
  }

  /** Reads a file; false when it is as before or was changed again while it was read: that settles later. */
  #read(path: string, signature?: string): boolean {
    const read = readTextFile(path)
    if (signature !== undefined && signatureOf(path) !== signature) return false
    const before = this.#proposal.drafts.get(path)
    const digest = read.kind === 'ok' ? digestOf(read.text) : 'unreadable'
    if (before?.digest === digest && digest !== 'unreadable') return false
    if (read.kind === 'ok') this.#noteLength(read.text)
    const { items, faults } =
      read.kind === 'ok'
        ? this.#options.parse(read.text, path)
        : { items: [], faults: [read.fault] }
    const good = faults.length === 0 ? items : (before?.good ?? this.#standIn(path))
    this.#proposal.set(path, { digest, good, faults })
    return true
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
  return text.length > HASHED_MAX ? text : hash('sha256', text, 'base64')
}
