// Journals writes the journals of one process. Records are written to the last journal. If the disk refuses a journal, the journal is
// abandoned with its unwritten records. The next record after the pause begins another journal with a new run (file-format.ts). The first
// generation of a run is greater than every generation in the folder, including those of other processes. `openImage` begins an image with
// the generation of the last journal.

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
  /** True if the folder had no state at the start. */
  readonly startsEmpty: boolean
  readonly pause: RetryPause
  /** Called when the disk refused a file or a write. */
  readonly onFailed: () => void
}

const SYNC_EVERY_MS = 1000

export class Journals {
  /** Time of the last successful write to a journal or an image. */
  lastWritten: Stamp
  readonly #options: JournalsOptions
  /** The buffer of `numbers`, whose records are written as separate frames. */
  readonly #urgent = new RecordBuffer()
  #journal: FrameFile | undefined
  #place: InPlace | undefined
  #next: number
  /** The generation with which the run began. */
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

  /** The generation of the newest file. */
  get generation(): number {
    return this.#next - 1
  }

  /** How many octets were written to the last journal. */
  get octets(): number {
    return this.#journal?.octets ?? 0
  }

  /** The name of the last journal if its file is gone or replaced, else undefined. Throws if the folder cannot be read. */
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
    // A document can fill the buffer. Then its write starts at once, so that the next records have room.
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

  /** Begins a new journal and returns it. Returns undefined if the disk refuses the file; the last journal may then continue. */
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

  /** Call when the journal was lost. The next record begins a new run. */
  giveUp(): void {
    this.#giveUp(this.#next)
  }

  /** Opens an image with the generation of the last journal. */
  openImage(): FrameFile | undefined {
    return this.#open('image', this.generation)
  }

  /** Resolves when every record is on the disk, or the disk has refused it. */
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
    // The file exists and takes this generation. So no journal can follow the present one without a gap, and a new run begins.
    if (file !== undefined && isJournal) this.#giveUp(generation + 1)
    this.#options.onFailed()
    return undefined
  }

  #behindAll(): number {
    try {
      return Math.max(this.#next, findGenerations(this.#options.disk.names()).next)
    } catch {
      // The folder cannot be read. The next write shows if it can be written.
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

  /** Syncs the journal within a second. */
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

/** Writes the waiting records, and syncs and closes the file. */
async function finish(file: FrameFile): Promise<void> {
  await file.drained()
  await file.sync()
  await file.close()
}
