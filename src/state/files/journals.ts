// The journals of one process, one behind the other, of which the last is written. One that the disk refuses is given up
// and its records are lost, so the one behind it begins a new run (file-header.ts); it is opened when there is something
// to write and the pause after the failure is over. `openImage` begins an image's file beside the journal. Before each run
// the folder is looked into: whoever had it meanwhile has generations of his own, and nothing is written behind those.

import type { PairRecord, SavedDocument, SavedNumber } from '../../restore/state-port.ts'
import type { Timer } from '../../core/clock.ts'
import type { FileKind } from './file-header.ts'
import type { FrameFile } from './frame-file.ts'
import { findGenerations, journalName } from './generations.ts'
import { InPlace } from './in-place.ts'
import { openFrameFile, type FrameFileShared } from './open-frame-file.ts'
import { RecordBuffer } from './record-buffer.ts'
import type { RetryPause } from '../retry-pause.ts'
import { stampOf, type Stamp } from '../stamp.ts'

export interface JournalsOptions extends FrameFileShared {
  /** Generation of the first file. */
  readonly next: number
  /** Whether nothing was known before. */
  readonly startsEmpty: boolean
  readonly pause: RetryPause
  /** The disk refused something. */
  readonly onFailed: () => void
}

const SYNC_EVERY_MS = 1000

export class Journals {
  /** When the disk took something, an image's file included. */
  lastWritten: Stamp
  readonly #options: JournalsOptions
  /** For frames of their own. */
  readonly #urgent = new RecordBuffer()
  #journal: FrameFile | undefined
  #place: InPlace | undefined
  #next: number
  /** Generation that the run of the journal began with. */
  #run = 0
  #startsEmpty: boolean
  #syncTimer: Timer | undefined
  #isClosed = false
  /** What goes on by itself: files being synced and closed. */
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

  /** Name of the last journal when what was written to it is not there any more. Throws when nobody can look. */
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
    // It may be large: what follows has room while it is written.
    journal.mustWait()
  }

  /** Written before this returns. */
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

  /** A new journal behind the last one, which goes on where there can't be a new one. */
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

  /** What was written is not to be found: a new run begins with what comes next. */
  giveUp(): void {
    this.#giveUp(this.#next)
  }

  /** An image's file of the last journal's generation. */
  openImage(): FrameFile | undefined {
    return this.#open('image', this.generation)
  }

  /** Until what was given is on the disk, or the disk has refused it. */
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
    // Its name is taken, so no journal can follow the present one without a gap.
    if (file !== undefined && isJournal) this.#giveUp(generation + 1)
    this.#options.onFailed()
    return undefined
  }

  #behindAll(): number {
    try {
      return Math.max(this.#next, findGenerations(this.#options.disk.names()).next)
    } catch {
      // The folder cannot be read; whether it can be written is seen next.
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

  /** Within a second what was written is on the disk itself, not only in the kernel's memory. */
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

/** Writes what is on its way, and closes. */
async function finish(file: FrameFile): Promise<void> {
  await file.drained()
  await file.sync()
  await file.close()
}
