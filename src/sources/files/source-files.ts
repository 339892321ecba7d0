// Reads the files of one kind (policies, endpoints, resources) that changed, and knows which version of each file is in force. A file with
// a fault keeps its last good version in force, and so does a configured file that is missing. Files that contradict each other keep their
// versions in force until they agree. `accept` puts all proposed versions in force at once (docs/spec/semantics 2).

import { hash } from 'node:crypto'
import type { Clock } from '../../core/clock.ts'
import type { Fault } from '../../core/errors.ts'
import type { PlacedPath } from '../../config/config.ts'
import { readTextFile } from '../../config/files.ts'
import { isObjectName } from '../../core/object-names.ts'
import { letYoungGrow } from '../../native/young-generation.ts'
import type { FileStanding, LastGoodTexts } from './last-good-texts.ts'
import { Proposal, type ProposalOptions } from './proposal.ts'
import type { ProgramItems, ReceivedItems } from './given-items.ts'
import {
  FileScan,
  goneFault,
  missingFault,
  SettledFiles,
  signatureOf,
  unreadableFault,
} from './settled-files.ts'

export interface Parsed<Item> {
  readonly items: readonly Item[]
  readonly faults: readonly Fault[]
}

export interface SourceFile<Item> {
  readonly path: string
  /** The items in force: of the present file, or of its last good version. */
  readonly items: readonly Item[]
  readonly state: 'in-force' | 'last-good' | 'rejected'
  readonly faults: readonly Fault[]
}

export interface SourceFilesOptions<Item> extends ProposalOptions<Item> {
  readonly paths: readonly PlacedPath[]
  readonly clock: Clock
  readonly parse: (text: string, file: string) => Parsed<Item>
  /** The key of a file's list, which can be empty. Absent: a file cannot be without items. */
  readonly list?: 'endpoints' | 'resources'
  /**
   * The texts that were in force before the start. A file that is broken or missing at the start uses its text from here. Without such a
   * text it has no items.
   */
  readonly texts?: LastGoodTexts | undefined
}

/** A proposal of items that the program set. */
export interface ProgramProposal {
  /** The contradictions between these items and other items. */
  readonly faults: readonly Fault[]
  /** Withdraws the items, so that the previous items are proposed again. */
  readonly undo: () => void
}

/** If one look reads more characters than this, the heap is allowed to grow: the items take about ten times as much memory. */
const MANY_CHARACTERS = 2 ** 20

export class SourceFiles<Item> {
  readonly #options: SourceFilesOptions<Item>
  readonly #settled: SettledFiles
  readonly #proposal: Proposal<Item>
  /** Files that were broken at the start and use their last good text. */
  readonly #fellBack = new Set<string>()
  #isStarting = false
  /** The look in progress. */
  #scan: FileScan | undefined
  /** How many characters this look has read. */
  #length = 0
  #isReachable = true
  /** Folders that cannot be read, so that their files keep their last versions. */
  #unreadable: readonly string[] = []

  constructor(options: SourceFilesOptions<Item>) {
    this.#options = options
    this.#settled = new SettledFiles(options.paths)
    this.#proposal = new Proposal(options)
  }

  /** The items in force. */
  get items(): readonly Item[] {
    return this.#proposal.inForce.all
  }

  /** The items that `accept` puts in force. */
  get proposed(): readonly Item[] {
    return this.#proposal.proposed.all
  }

  /** The faults of the present files. */
  get faults(): readonly Fault[] {
    return this.#proposal.faults
  }

  /** Faults for folders that can no longer be read. The last versions of their files stay in force. */
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

  /** True if the last look could read every configured path. */
  get isReachable(): boolean {
    return this.#isReachable
  }

  /** True while a change waits for its quiet time. */
  get unsettled(): boolean {
    return this.#settled.unsettled
  }

  /** Reads every file. Returns all faults, also those of configured paths, but no faults that a file's last good text makes up for. */
  loadAll(): readonly Fault[] {
    const { paths, clock } = this.#options
    const scan = new FileScan(paths, this.#options.texts?.kept.keys())
    scan.step(clock, Number.POSITIVE_INFINITY)
    this.#isReachable = scan.isWhole
    this.#settled.accept(scan)
    this.#isStarting = true
    this.#length = 0
    for (const path of scan.files.keys()) this.#read(path)
    const missing = scan.missing.filter(({ path }) => !this.#readMissing(path))
    this.#isStarting = false
    this.#proposal.propose()
    const files = [...this.#proposal.drafts.keys()].filter((path) => !isObjectName(path))
    const found = files.flatMap((path) => {
      return this.#fellBack.has(path)
        ? (this.#proposal.held.get(path) ?? [])
        : this.#proposal.faultsOf(path)
    })
    return [...missing.map(missingFault), ...scan.faults, ...found]
  }

  /** Says which items of a file are in force after `accept`. */
  standingOf(path: string): FileStanding {
    if (!this.#proposal.drafts.has(path)) return 'gone'
    return this.#proposal.held.has(path) ? 'held' : 'in-force'
  }

  /** True if the proposed version of a file differs from the version in force. */
  isAhead(path: string): boolean {
    const { proposed, inForce } = this.#proposal
    return proposed.get(path) !== inForce.get(path)
  }

  /** Looks at the files until time `until`. Returns true when all files have been looked at; then call `poll`. */
  scan(until: number): boolean {
    const { clock } = this.#options
    this.#scan ??= this.#newScan()
    return this.#scan.step(clock, until)
  }

  /** Ends the look and reads the files whose change has had its quiet time. Returns true if the proposal can differ from before. */
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
    if (changed) this.#proposal.propose()
    return changed
  }

  /** Proposes items that the program sets by name. `undefined` removes the items of a name. */
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

  /** Proposes versions of objects by name. `undefined` removes an object. Returns true if the proposal can differ from before. */
  receive(objects: ReadonlyMap<string, ReceivedItems<Item> | undefined>): boolean {
    let changed = false
    for (const [name, received] of objects) {
      const before = this.#proposal.drafts.get(name)
      if (received !== undefined && before?.digest === received.digest) continue
      const good = received?.faults.length === 0 ? received.items : (before?.good ?? [])
      const draft = received && { digest: received.digest, good, faults: received.faults }
      changed = this.#proposal.set(name, draft) || changed
    }
    if (changed) this.#proposal.propose()
    return changed
  }

  /** True if a file keeps its old version because the new version contradicts other files. */
  get hasHeld(): boolean {
    return this.#proposal.held.size > 0
  }

  /** Checks all files again for contradictions. */
  proposeAgain(): void {
    this.#proposal.proposeAll()
  }

  /** Makes the next `poll` read all files again, also unchanged files. */
  forget(): void {
    this.#settled.forget()
  }

  /** Puts the proposals in force. Returns true if the items in force have changed. */
  accept(): boolean {
    return this.#proposal.accept()
  }

  #newScan(): FileScan {
    return new FileScan(this.#options.paths, this.#settled.paths())
  }

  /** The items of the text that was in force before the start. Empty without such a text. */
  #lastGood(path: string): readonly Item[] {
    const text = this.#isStarting ? this.#options.texts?.kept.get(path) : undefined
    if (text === undefined) return []
    const { items, faults } = this.#parse(text, path)
    if (faults.length > 0) return []
    this.#fellBack.add(path)
    return items
  }

  /** Uses the last good text of a configured file that is missing at the start. Returns false without such a text. */
  #readMissing(path: string): boolean {
    this.#read(path)
    if (this.#fellBack.has(path)) return true
    this.#proposal.set(path, undefined)
    return false
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

  /**
   * Reads a file. Returns false if the file is unchanged, or if the file changed during the read. In the second case a later look reads the
   * file again.
   */
  #read(path: string, signature?: string): boolean {
    const read = readTextFile(path)
    if (signature !== undefined && signatureOf(path) !== signature) return false
    const before = this.#proposal.drafts.get(path)
    const digest = read.kind === 'ok' ? digestOf(read.text) : 'unreadable'
    if (before?.digest === digest && digest !== 'unreadable') return false
    if (read.kind === 'ok') this.#noteLength(read.text)
    const { items, faults } =
      read.kind === 'ok'
        ? this.#parse(read.text, path)
        : { items: [], faults: [goneFault(path, this.#options.list) ?? read.fault] }
    const good = faults.length === 0 ? items : (before?.good ?? this.#lastGood(path))
    this.#proposal.set(path, { digest, good, faults })
    return true
  }
}

/** A text of at most this length is recognized by its hash. */
const HASHED_MAX = 65_536

/** Equal for equal texts. A long text is its own digest, because comparing it takes a tenth of the time of hashing it. */
function digestOf(text: string): string {
  return text.length > HASHED_MAX ? text : hash('sha256', text, 'base64')
}
