// What must outlive the process, on disk: an image of everything, and a journal of what changed since it was begun. A
// new image begins a new journal; records are never written into a file of a process before. What the disk refuses is
// counted and told, the journal is given up, and an image is wanted after a while; meanwhile nothing waits and nothing
// stops. A journal behind one that was given up begins a new run (file-header.ts), because records are missing.

import type { BootClock, Clock, Timer } from '../core/clock.ts'
import type {
  ImageSink,
  PairRecord,
  SavedDocument,
  SavedNumber,
  StateSink,
} from '../control/state-sink.ts'
import type { Disk } from './disk.ts'
import { StateFaults, type FaultCause, type StateFault } from './faults.ts'
import type { FileKind } from './file-header.ts'
import type { FrameFile } from './frame-file.ts'
import { ImageWriter, type ImageEnd } from './image-writer.ts'
import { openFrameFile } from './open-frame-file.ts'
import { RecordBuffer } from './record-buffer.ts'
import type { ReadState } from './read-state.ts'
import { removeBefore, removeUnfinished } from './remove-old.ts'
import { RetryPause } from './retry-pause.ts'
import { elapsedSeconds, stampOf, type Stamp } from './stamp.ts'

export interface StateStoreOptions {
  readonly disk: Disk
  readonly clock: Clock
  readonly boot: BootClock
  readonly bootId: Uint8Array
  /** What was in the folder. */
  readonly read: Pick<ReadState, 'state' | 'image' | 'generations'>
  /** Each cause once, until all is well again. */
  readonly onFault: (fault: StateFault) => void
}

/** What there is to say of it, for metrics and `status`. */
export interface StateUse {
  /** Of the newest file. */
  readonly generation: number
  readonly imageOctets: number
  readonly journalOctets: number
  /** Seconds since the disk took something, or since the start. */
  readonly age: number
  /** Whether the disk refused something since the last image. */
  readonly isFailing: boolean
  readonly faults: Readonly<Record<FaultCause, number>>
}

/** A journal may grow to this, or to the size of the last image. */
const JOURNAL_OCTETS_MIN = 4 * 2 ** 20
const SYNC_EVERY_MS = 1000

export class StateStore implements StateSink {
  readonly #options: StateStoreOptions
  readonly #faults: StateFaults
  readonly #pause: RetryPause
  /** For frames of their own. */
  readonly #urgent = new RecordBuffer()
  #journal: FrameFile | undefined
  #image: ImageWriter | undefined
  #next: number
  /** Generation that the run of the journal began with. */
  #run = 0
  /** Whether the files of this process alone are everything. */
  #startsEmpty: boolean
  /** The newest image that is known to be good. */
  #goodImage: number | undefined
  #imageOctets = 0
  #needsImage = true
  #isFailing = false
  #lastWritten: Stamp
  #syncTimer: Timer | undefined
  #isClosed = false
  /** What goes on by itself: files being closed or removed. */
  #background: Promise<void>

  constructor(options: StateStoreOptions) {
    const { read, clock, disk } = options
    this.#options = options
    this.#faults = new StateFaults(options.onFault)
    this.#pause = new RetryPause(clock)
    this.#lastWritten = stampOf(clock, options.boot)
    this.#next = read.generations.next
    this.#goodImage = read.image
    this.#startsEmpty = read.state === undefined
    this.#background = removeUnfinished(disk, this.#faults)
  }

  get use(): StateUse {
    const { clock, boot } = this.#options
    return {
      generation: this.#next - 1,
      imageOctets: this.#imageOctets,
      journalOctets: this.#journal?.octets ?? 0,
      age: elapsedSeconds(this.#lastWritten, true, stampOf(clock, boot)),
      isFailing: this.#isFailing,
      faults: this.#faults.counts,
    }
  }

  get isFull(): boolean {
    return this.#journal?.mustWait() ?? false
  }

  get wantsImage(): boolean {
    if (!this.#mayBeginImage) return false
    const bound = Math.max(JOURNAL_OCTETS_MIN, this.#imageOctets)
    return this.#needsImage || (this.#journal?.octets ?? 0) > bound
  }

  numbers(numbers: readonly SavedNumber[]): void {
    const journal = this.#journal ?? this.#resume()
    if (journal === undefined || numbers.length === 0) return
    for (const number of numbers) {
      if (!this.#urgent.number(number)) {
        this.#faults.add('too-large', `number ${number.id} has more labels than a frame may have`)
      } else if (this.#urgent.isFull) journal.writeNow(this.#urgent)
    }
    if (this.#urgent.length > 0) journal.writeNow(this.#urgent)
    this.#syncSoon()
  }

  pair(record: PairRecord): void {
    const journal = this.#journal ?? this.#resume()
    if (journal !== undefined && !journal.filling.pair(record)) journal.refuse()
  }

  until(row: number, until: number): void {
    const journal = this.#journal ?? this.#resume()
    if (journal !== undefined && !journal.filling.until(row, until)) journal.refuse()
  }

  gone(row: number): void {
    const journal = this.#journal ?? this.#resume()
    if (journal !== undefined && !journal.filling.gone(row)) journal.refuse()
  }

  document(document: SavedDocument): void {
    const journal = this.#journal ?? this.#resume()
    if (journal === undefined) return
    if (!journal.filling.document(document)) journal.refuse()
    // It may be large: what follows has room while it is written.
    journal.mustWait()
  }

  flush(): void {
    if (this.#journal === undefined) return
    this.#journal.flush()
    this.#syncSoon()
  }

  beginImage(): ImageSink | undefined {
    if (!this.#mayBeginImage) return undefined
    const before = this.#journal
    const journal = this.#openJournal()
    if (journal === undefined) return undefined
    if (before !== undefined) this.#later(retire(before))
    const generation = this.#next - 1
    const file = this.#open('image', generation)
    if (file === undefined) return undefined
    const image = new ImageWriter({
      ...this.#options,
      generation,
      file,
      faults: this.#faults,
      syncJournal: async () => await this.#syncWhole(journal),
      onEnd: (end) => this.#endImage(image, end),
    })
    this.#image = image
    // A fault from here on wants another one.
    this.#needsImage = false
    return image
  }

  /** Until what was given is on the disk, or the disk has refused it. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#syncTimer?.cancel()
    const [image, journal] = [this.#image, this.#journal]
    this.#journal = undefined
    await image?.close()
    if (journal !== undefined) await retire(journal)
    await this.#background
  }

  get #mayBeginImage(): boolean {
    return !this.#isClosed && this.#image === undefined && this.#pause.isOver
  }

  /** A journal where there is none: at the start, and some time after one was given up. */
  #resume(): FrameFile | undefined {
    return this.#isClosed || !this.#pause.isOver ? undefined : this.#openJournal()
  }

  /** A new journal behind the one that is written, which goes on when there can't be a new one. */
  #openJournal(): FrameFile | undefined {
    const before = this.#journal
    const generation = this.#next
    if (before === undefined) this.#run = generation
    const file = this.#open('journal', generation)
    this.#startsEmpty = false
    if (file === undefined) return undefined
    this.#next = generation + 1
    before?.handOver(file)
    this.#journal = file
    return file
  }

  /** A file that can be written; else the disk is left alone for a while. */
  #open(kind: FileKind, generation: number): FrameFile | undefined {
    const isJournal = kind === 'journal'
    const shared = { ...this.#options, faults: this.#faults }
    const file = openFrameFile(shared, {
      kind,
      generation,
      run: this.#run,
      startsEmpty: isJournal && this.#startsEmpty,
      octetsBefore: isJournal ? (this.#journal?.octetsComing ?? 0) : 0,
      onWritten: (stamp) => void (this.#lastWritten = stamp),
      onBroken: (broken) => this.#broken(broken),
    })
    if (file?.isBroken === false) return file
    if (file !== undefined) this.#later(file.close())
    // Its name is taken, so no journal can follow the present one without a gap.
    if (file !== undefined && isJournal) this.#giveUp(generation + 1)
    this.#failed()
    return undefined
  }

  #broken(file: FrameFile): void {
    if (file === this.#journal) this.#giveUp(this.#next)
    this.#failed()
  }

  #giveUp(next: number): void {
    this.#next = next
    if (this.#journal !== undefined) this.#later(this.#journal.close())
    this.#journal = undefined
  }

  #failed(): void {
    this.#pause.failed()
    this.#needsImage = true
    this.#isFailing = true
  }

  #endImage(image: ImageWriter, end: ImageEnd): void {
    this.#image = undefined
    if (end === 'failed') this.#failed()
    if (end !== 'good') {
      this.#needsImage = true
      return
    }
    const previous = this.#goodImage
    this.#goodImage = image.generation
    this.#imageOctets = image.octets
    if (previous !== undefined) {
      this.#later(removeBefore(this.#options.disk, previous, this.#faults))
    }
    if (this.#needsImage) return
    this.#isFailing = false
    this.#pause.succeeded()
    this.#faults.healed()
  }

  async #syncWhole(journal: FrameFile): Promise<number | undefined> {
    await journal.drained()
    const { octets } = journal
    await journal.sync()
    return journal.isBroken ? undefined : octets
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
async function retire(file: FrameFile): Promise<void> {
  await file.drained()
  await file.sync()
  await file.close()
}
