// The journals of one process; records go to the last one. A journal that the disk refuses is abandoned with its records, and
// the next one begins a new run (file-format.ts) once there is a record and the pause after the failure is over. `openImage`
// begins an image beside the journal. Each run begins behind every generation in the folder, also those of other processes.

import type { PairRecord, SavedDocument, SavedNumber } from '../../restore/state-port.ts'
import type { Timer } from '../../core/clock.ts'
import type { FileKind } from './file-format.ts'
import { type FrameFile, type FrameFileShared, openFrameFile } from './frame-file.ts'
import { findGenerations, journalName } from './generations.ts'
import { InPlace } from './disk.ts'
import { RecordBuffer } from './record-buffer.ts'
import type { RetryPause } from '../faults.ts'
import { stampOf, type Stamp } from '../stamp.ts'

export interface JournalsOptions extends FrameFileShared {
  /** The generation of the first file. */
  readonly next: number
  /** Whether nothing was known before. */
  readonly startsEmpty: boolean
  readonly pause: RetryPause
  /** The disk refused something. */
  readonly onFailed: () => void
}

const SYNC_EVERY_MS = 1000

export class Journals {
  /** The last successful write, images included. */
  lastWritten: Stamp
  readonly #options: JournalsOptions
  /** For frames of their own. */
  readonly #urgent = new RecordBuffer()
  #journal: FrameFile | undefined
  #place: InPlace | undefined
  #next: number
  /** The generation that the run began with. */
  #run = 0
  #startsEmpty: boolean
  #syncTimer: Timer | undefined
  #isClosed = false
  /** Files that are being synced and closed. */
  #background: Promise<void> = Promise.resolve()

  constructor(options: JournalsOptions) {
    this.#options = options
    this.#next = options.next
    this.#startsEmpty = options.startsEmpty
    this.lastWritten = stampOf(options.clock, options.boot)
  }

  /** Generation of the newest file. */
  get generation(): number {
    return this.#next - 1
  }

  /** Octets written to the last journal. */
  get octets(): number {
    return this.#journal?.octets ?? 0
  }

  /** The name of the last journal when it is gone or replaced. Throws when the folder can not be read. */
  get stray(): string | undefined {
    const isInPlace = this.#journal === undefined || this.#place?.grows(this.octets) === true
    return isInPlace ? undefined : this.#place?.name
  }

  mustWait(): boolean {
    return this.#journal?.mustWait() ?? false
  }

  pair(record: PairRecord): void {
    const journal = this.#current()
    if (journal !== undefined && !journal.filling.pair(record)) journal.refuse()
  }

  until(row: number, until: number): void {
    const journal = this.#current()
    if (journal !== undefined && !journal.filling.until(row, until)) journal.refuse()
  }

  gone(row: number): void {
    const journal = this.#current()
    if (journal !== undefined && !journal.filling.gone(row)) journal.refuse()
  }

  document(document: SavedDocument): void {
    const journal = this.#current()
    if (journal === undefined) return
    if (!journal.filling.document(document)) journal.refuse()
    // A document may be large, so its write starts at once and leaves room for what follows.
    journal.mustWait()
  }

  /** Writes the numbers before it returns. */
  numbers(numbers: readonly SavedNumber[]): void {
    const journal = numbers.length === 0 ? undefined : this.#current()
    if (journal === undefined) return
    for (const number of numbers) {
      if (!this.#urgent.number(number)) {
        const message = `number ${number.id} has more labels than a frame may have`
        this.#options.faults.add('too-large', message)
      } else if (this.#urgent.isFull) journal.writeNow(this.#urgent)
    }
    if (this.#urgent.length > 0) journal.writeNow(this.#urgent)
    this.#syncSoon()
  }

  flush(): void {
    if (this.#journal === undefined) return
    this.#journal.flush()
    this.#syncSoon()
  }

  /** Begins a new journal. When the disk refuses it, the last one continues. */
  begin(): FrameFile | undefined {
    const before = this.#journal
    if (before === undefined) this.#run = this.#next = this.#behindAll()
    const generation = this.#next
    const file = this.#open('journal', generation)
    this.#startsEmpty = false
    if (file === undefined) return undefined
    this.#next = generation + 1
    if (before !== undefined) {
      before.handOver(file)
      this.#later(finish(before))
    }
    this.#journal = file
    this.#place = new InPlace(this.#options.disk, journalName(generation))
    return file
  }

  /** After the journal was lost: the next record begins a new run. */
  giveUp(): void {
    this.#giveUp(this.#next)
  }

  /** Opens an image with the generation of the last journal. */
  openImage(): FrameFile | undefined {
    return this.#open('image', this.generation)
  }

  /** Resolves once every record is on the disk or refused. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#syncTimer?.cancel()
    if (this.#journal !== undefined) this.#later(finish(this.#journal))
    this.#journal = undefined
    await this.#background
  }

  #current(): FrameFile | undefined {
    if (this.#journal !== undefined) return this.#journal
    return this.#isClosed || !this.#options.pause.isOver ? undefined : this.begin()
  }

  #open(kind: FileKind, generation: number): FrameFile | undefined {
    const isJournal = kind === 'journal'
    const file = openFrameFile(this.#options, {
      kind,
      generation,
      run: this.#run,
      startsEmpty: isJournal && this.#startsEmpty,
      octetsBefore: isJournal ? (this.#journal?.octetsComing ?? 0) : 0,
      onWritten: (stamp) => void (this.lastWritten = stamp),
      onBroken: (broken) => this.#broken(broken),
    })
    if (file?.isBroken === false) return file
    if (file !== undefined) this.#later(file.close())
    // Its name is taken, so no journal can follow the current one without a gap.
    if (file !== undefined && isJournal) this.#giveUp(generation + 1)
    this.#options.onFailed()
    return undefined
  }

  #behindAll(): number {
    try {
      return Math.max(this.#next, findGenerations(this.#options.disk.names()).next)
    } catch {
      // The folder can not be read; the next write shows whether it can be written.
      return this.#next
    }
  }

  #broken(file: FrameFile): void {
    if (file === this.#journal) this.#giveUp(this.#next)
    this.#options.onFailed()
  }

  #giveUp(next: number): void {
    this.#next = next
    if (this.#journal !== undefined) this.#later(this.#journal.close())
    this.#journal = undefined
  }

  /** Syncs what was written within a second. */
  #syncSoon(): void {
    this.#syncTimer ??= this.#options.clock.after(SYNC_EVERY_MS, () => {
      this.#syncTimer = undefined
      if (this.#journal !== undefined) this.#later(this.#journal.sync())
    })
  }

  #later(work: Promise<void>): void {
    const before = this.#background
    this.#background = before.then(async () => await work)
  }
}

/** Writes what waits, syncs and closes. */
async function finish(file: FrameFile): Promise<void> {
  await file.drained()
  await file.sync()
  await file.close()
}
