// The files of one kind (policies, endpoints, resources): reads those that changed, and knows which version of each is in
// force. A file with a fault keeps its last good version; files that contradict each other keep theirs until they agree.
// `accept` puts all proposed versions in force at once (docs/spec/semantics 2).

import { hash } from 'node:crypto'
import type { Clock } from '../../core/clock.ts'
import type { Fault } from '../../core/errors.ts'
import type { PlacedPath } from '../../config/config.ts'
import { readTextFile } from '../../config/files.ts'
import { letYoungGrow } from '../../native/young-generation.ts'
import type { FileStanding, LastGoodTexts } from './last-good-texts.ts'
import { Proposal, type ProposalOptions } from './proposal.ts'
import { FileScan, SettledFiles, signatureOf } from './settled-files.ts'

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
  /** A file that is broken at the start takes its text from here. Without it, such a file has no items. */
  readonly texts?: LastGoodTexts | undefined
}

/** Items that the program sets under a name, as a file without faults. */
export interface ProgramItems<Item> {
  /** Equal for equal items: setting them again changes nothing. */
  readonly digest: string
  readonly items: readonly Item[]
}

/** What the program set and is proposed now. */
export interface ProgramProposal {
  /** How it contradicts what else is in force. */
  readonly faults: readonly Fault[]
  /** Proposes what was proposed before. */
  readonly undo: () => void
}

/** Characters read in one look from which on the heap should grow: their items take some ten times as much. */
const MANY_CHARACTERS = 2 ** 20

export class SourceFiles<Item> {
  readonly #options: SourceFilesOptions<Item>
  readonly #settled = new SettledFiles()
  readonly #proposal: Proposal<Item>
  /** Files that were broken at the start and took their last good text. */
  readonly #fellBack = new Set<string>()
  #isStarting = false
  /** The look in progress. */
  #scan: FileScan | undefined
  /** Characters read in this look. */
  #length = 0
  #isReachable = true
  #missing: readonly string[] = []
  /** Folders that can not be read, so that their files stay as they were. */
  #unreadable: readonly string[] = []

  constructor(options: SourceFilesOptions<Item>) {
    this.#options = options
    this.#proposal = new Proposal(options)
  }

  /** Items in force. */
  get items(): readonly Item[] {
    return this.#proposal.inForce.all
  }

  /** Items to be in force next. */
  get proposed(): readonly Item[] {
    return this.#proposal.proposed.all
  }

  /** What is wrong with the files as they are now. */
  get faults(): readonly Fault[] {
    return this.#proposal.faults
  }

  /** Folders that can no longer be read; the last versions of their files stay in force. */
  get folderFaults(): readonly Fault[] {
    return this.#unreadable.map(unreadableFault)
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

  /** Configured files that do not exist: nothing of them is in force. */
  get missingFiles(): readonly string[] {
    return this.#missing
  }

  /** Whether the last look could read every configured path. */
  get isReachable(): boolean {
    return this.#isReachable
  }

  /** Whether a change waits to settle. */
  get unsettled(): boolean {
    return this.#settled.unsettled
  }

  /** Reads every file; returns all faults, configured paths included, but those of files that fell back to their last good text. */
  loadAll(): readonly Fault[] {
    const { paths, clock } = this.#options
    const scan = new FileScan(paths, this.#options.texts?.kept.keys())
    scan.step(clock, Number.POSITIVE_INFINITY)
    this.#isReachable = scan.isWhole
    this.#settled.accept(scan)
    this.#isStarting = true
    this.#length = 0
    for (const path of scan.files.keys()) this.#read(path)
    this.#isStarting = false
    this.#proposal.propose()
    const found = [...this.#proposal.drafts.keys()].flatMap((path) => {
      return this.#fellBack.has(path)
        ? (this.#proposal.held.get(path) ?? [])
        : this.#proposal.faultsOf(path)
    })
    return [...scan.faults, ...found]
  }

  /** What is in force of a file after `accept`. */
  standingOf(path: string): FileStanding {
    if (!this.#proposal.drafts.has(path)) return 'gone'
    return this.#proposal.held.has(path) ? 'held' : 'in-force'
  }

  /** Whether the proposed version of a file differs from the one in force. */
  isAhead(path: string): boolean {
    const { proposed, inForce } = this.#proposal
    return proposed.get(path) !== inForce.get(path)
  }

  /** Looks at the files until the time is over; true once it has looked at all, so that `poll` can follow. */
  scan(until: number): boolean {
    const { clock } = this.#options
    this.#scan ??= this.#newScan()
    return this.#scan.step(clock, until)
  }

  /** Ends the look and reads the files whose change has settled; returns whether the proposal may differ. */
  poll(): boolean {
    const { clock } = this.#options
    const scan = this.#scan ?? this.#newScan()
    scan.step(clock, Number.POSITIVE_INFINITY)
    this.#scan = undefined
    this.#length = 0
    this.#isReachable = scan.isWhole
    const settled = this.#settled.look(scan, clock.now())
    const unreadable = this.#settled.unreadableFolders(scan)
    let changed = unreadable.join('\n') !== this.#unreadable.join('\n')
    this.#unreadable = unreadable
    for (const { kind, path } of settled) {
      if (kind === 'removed') changed = this.#proposal.set(path, undefined) || changed
      else changed = this.#read(path, scan.files.get(path)?.signature) || changed
    }
    // A file that has just gone may come back within the time that an edit takes.
    this.#missing = scan.missing.filter(
      (path) => !this.#proposal.drafts.has(path) && !unreadable.includes(path),
    )
    if (changed) this.#proposal.propose()
    return changed
  }

  /** Proposes what the program sets, or removes (undefined), by name. */
  propose(edits: ReadonlyMap<string, ProgramItems<Item> | undefined>): ProgramProposal {
    const names = [...edits.keys()]
    const before = names.map((name) => [name, this.#proposal.drafts.get(name)] as const)
    for (const [name, each] of edits) {
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

  /** Whether a file is held because it contradicts others. */
  get hasHeld(): boolean {
    return this.#proposal.held.size > 0
  }

  /** Checks again which files contradict each other. */
  proposeAgain(): void {
    this.#proposal.proposeAll()
  }

  /** The next `poll` reads all files again, changed or not. */
  forget(): void {
    this.#settled.forget()
  }

  /** Puts what is proposed in force; returns whether anything differs. */
  accept(): boolean {
    return this.#proposal.accept()
  }

  #newScan(): FileScan {
    return new FileScan(this.#options.paths, this.#settled.paths())
  }

  /** Items of the text that was in force before the start; none without one. */
  #lastGood(path: string): readonly Item[] {
    const text = this.#isStarting ? this.#options.texts?.kept.get(path) : undefined
    if (text === undefined) return []
    const { items, faults } = this.#parse(text, path)
    if (faults.length > 0) return []
    this.#fellBack.add(path)
    return items
  }

  #parse(text: string, path: string): Parsed<Item> {
    const parsed = this.#options.parse(text, path)
    if (parsed.faults.length === 0) this.#options.texts?.note(path, text)
    return parsed
  }

  #noteLength({ length }: string): void {
    const wereMany = this.#length > MANY_CHARACTERS
    this.#length += length
    if (!wereMany && this.#length > MANY_CHARACTERS) letYoungGrow()
  }

  /** Reads a file; false when it is unchanged, or changed again during the read: that change settles later. */
  #read(path: string, signature?: string): boolean {
    const read = readTextFile(path)
    if (signature !== undefined && signatureOf(path) !== signature) return false
    const before = this.#proposal.drafts.get(path)
    const digest = read.kind === 'ok' ? digestOf(read.text) : 'unreadable'
    if (before?.digest === digest && digest !== 'unreadable') return false
    if (read.kind === 'ok') this.#noteLength(read.text)
    const { items, faults } =
      read.kind === 'ok' ? this.#parse(read.text, path) : { items: [], faults: [read.fault] }
    const good = faults.length === 0 ? items : (before?.good ?? this.#lastGood(path))
    this.#proposal.set(path, { digest, good, faults })
    return true
  }
}

function unreadableFault(folder: string): Fault {
  const message = 'cannot read this folder any more: the last versions of its files stay in force'
  return { position: { file: folder, line: 1, column: 1 }, message }
}

/** Up to this length a text is recognized by its hash. */
const HASHED_MAX = 65_536

/** Equal for equal texts. A long text is its own digest: comparing it costs a tenth of hashing it. */
function digestOf(text: string): string {
  return text.length > HASHED_MAX ? text : hash('sha256', text, 'base64')
}
