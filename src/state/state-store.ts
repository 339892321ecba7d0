// StateStore keeps the state on disk: an image of everything, and a journal of the changes since the image began. Each new image begins a
// new journal. A process never appends to a file of another process. If the disk refuses something, the store counts and reports this,
// and wants a new image after a pause. No caller waits until the disk has stored a record.

import type { BootClock, Clock } from '../core/clock.ts'
import type {
  ImageSink,
  PairRecord,
  SavedDocument,
  SavedNumber,
  StateSink,
} from '../restore/state-port.ts'
import { type Disk, guardedDisk, InPlace, openDisk } from './files/disk.ts'
import { type FaultCause, RetryPause, type StateFault, StateFaults } from './faults.ts'
import type { FrameFile } from './files/frame-file.ts'
import { imageName, removeBefore, removeUnfinished } from './files/generations.ts'
import { ImageWriter, type ImageEnd } from './files/image-writer.ts'
import { Journals } from './files/journals.ts'
import { readState, type ReadState } from './read-state.ts'
import { elapsedSeconds, readBootId, stampOf } from './stamp.ts'

export interface StateStoreOptions {
  readonly disk: Disk
  readonly clock: Clock
  readonly boot: BootClock
  readonly bootId: Uint8Array
  /** The content of the folder at the start. */
  readonly read: Pick<ReadState, 'state' | 'image' | 'generations'>
  /** Called once for each cause. After a finished image, each cause is reported anew. */
  readonly onFault: (fault: StateFault) => void
}

/** Figures for metrics and `status`. */
export interface StateUse {
  /** The generation of the newest file. */
  readonly generation: number
  readonly imageOctets: number
  readonly journalOctets: number
  /** Seconds since the last successful write, or since the start. */
  readonly age: number
  /** True if the disk refused or lost something since the last good image. */
  readonly isFailing: boolean
  readonly faults: Readonly<Record<FaultCause, number>>
}

/** A new image is wanted when the journal is longer than this and longer than the last image. */
const JOURNAL_OCTETS_MIN = 4 * 2 ** 20

export class StateStore implements StateSink {
  onLost: () => void = () => undefined
  readonly #options: StateStoreOptions
  readonly #faults: StateFaults
  readonly #pause: RetryPause
  readonly #journals: Journals
  #image: ImageWriter | undefined
  /** The newest good image. */
  #goodImage: number | undefined
  #place: InPlace | undefined
  #imageOctets = 0
  #needsImage = true
  #isFailing = false
  #isClosed = false
  #removing: Promise<void>

  constructor(options: StateStoreOptions) {
    const { read, clock, disk, boot, bootId } = options
    this.#options = options
    const faults = new StateFaults(options.onFault)
    this.#faults = faults
    this.#pause = new RetryPause(clock)
    this.#journals = new Journals({
      ...{ disk, clock, boot, bootId, faults },
      next: read.generations.next,
      startsEmpty: read.state === undefined,
      pause: this.#pause,
      onFailed: () => this.#failed(),
    })
    this.#goodImage = read.image
    if (read.image !== undefined) this.#place = new InPlace(disk, imageName(read.image))
    this.#removing = removeUnfinished(disk, faults)
  }

  get use(): StateUse {
    const { clock, boot } = this.#options
    const { generation, octets, lastWritten } = this.#journals
    return {
      generation,
      imageOctets: this.#imageOctets,
      journalOctets: octets,
      age: elapsedSeconds(lastWritten, true, stampOf(clock, boot)),
      isFailing: this.#isFailing,
      faults: this.#faults.counts,
    }
  }

  get isFull(): boolean {
    return this.#journals.mustWait()
  }

  get isBehind(): boolean {
    return this.#isFailing
  }

  get wantsImage(): boolean {
    const bound = Math.max(JOURNAL_OCTETS_MIN, this.#imageOctets)
    return this.#mayBeginImage && (this.#needsImage || this.#journals.octets > bound)
  }

  numbers(numbers: readonly SavedNumber[]): void {
    this.#journals.numbers(numbers)
  }

  pair(record: PairRecord): void {
    this.#journals.pair(record)
  }

  until(row: number, until: number): void {
    this.#journals.until(row, until)
  }

  gone(row: number): void {
    this.#journals.gone(row)
  }

  document(document: SavedDocument): void {
    this.#journals.document(document)
  }

  flush(): void {
    this.#journals.flush()
  }

  beginImage(): ImageSink | undefined {
    if (!this.#mayBeginImage) return undefined
    const journal = this.#journals.begin()
    const file = journal && this.#journals.openImage()
    if (journal === undefined || file === undefined) return undefined
    const image: ImageWriter = new ImageWriter({
      disk: this.#options.disk,
      generation: this.#journals.generation,
      file,
      faults: this.#faults,
      syncJournal: async () => await syncWhole(journal),
      onEnd: (end, place) => this.#endImage(image, end, place),
    })
    this.#image = image
    // A fault after this point sets `#needsImage` again, so another image follows.
    this.#needsImage = false
    return image
  }

  /** Checks with a stat of two files that the last journal and image are still in the folder. If not, calls `lose`. */
  look(): void {
    if (this.#isClosed) return
    try {
      const stray = this.#journals.stray ?? (this.#place?.rests === false && this.#place.name)
      if (typeof stray === 'string') this.lose(`${stray} is not the one that was written`)
    } catch (error) {
      this.#faults.addError(error)
    }
  }

  /** Call when files were lost. Everything is then written again, beginning with an image. */
  lose(reason: string): void {
    this.#faults.add('lost', reason)
    this.#journals.giveUp()
    this.#goodImage = undefined
    this.#place = undefined
    this.#needsImage = true
    this.#isFailing = true
    this.onLost()
  }

  /** Counts the loss of a file of the settings or resources. The owner of the file writes it again and reports the loss. */
  missed(): void {
    this.#faults.counts.lost++
  }

  /** Call when the folder is writable again. Ends the pause after a failure. */
  hurry(): void {
    this.#pause.succeeded()
    this.onLost()
  }

  /** Abandons an unfinished image. Resolves when every record is on the disk, or the disk has refused it. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#image?.close()
    await this.#journals.close()
    await this.#removing
  }

  get #mayBeginImage(): boolean {
    return !this.#isClosed && this.#image === undefined && this.#pause.isOver
  }

  #failed(): void {
    this.#pause.failed()
    this.#needsImage = true
    this.#isFailing = true
  }

  #endImage(image: ImageWriter, end: ImageEnd, place?: InPlace): void {
    this.#image = undefined
    if (end === 'failed') this.#failed()
    if (end !== 'good') {
      this.#needsImage = true
      return
    }
    const previous = this.#goodImage
    this.#goodImage = image.generation
    this.#place = place
    this.#imageOctets = image.octets
    if (previous !== undefined) this.#removeBefore(previous)
    if (this.#needsImage) return
    this.#isFailing = false
    this.#pause.succeeded()
    this.#faults.healed()
  }

  #removeBefore(generation: number): void {
    const removing = removeBefore(this.#options.disk, generation, this.#faults)
    const before = this.#removing
    this.#removing = before.then(async () => await removing)
  }
}

/** Writes and syncs all records of the journal. Resolves to the journal's length in octets, or to undefined if the journal is broken. */
async function syncWhole(journal: FrameFile): Promise<number | undefined> {
  await journal.drained()
  const { octets } = journal
  await journal.sync()
  return journal.isBroken ? undefined : octets
}

export interface OpenStateOptions {
  readonly folder: string
  readonly clock: Clock
  readonly boot: BootClock
  /** `limits.pairs` */
  readonly pairsMax: number
  /** Throws while another process owns the folder. */
  readonly mayWrite?: () => void
  readonly onFault: (fault: StateFault) => void
  readonly disk?: Disk
}

export interface OpenedState {
  readonly read: ReadState
  readonly store: StateStore
}

/** Reads a state folder, and returns the store that writes the folder. Call once, at the start. */
export function openState(options: OpenStateOptions): OpenedState {
  const { folder, clock, boot, pairsMax, onFault } = options
  const disk = guardedDisk(options.disk ?? openDisk(folder), options.mayWrite ?? (() => undefined))
  const bootId = readBootId()
  const read = readState({ disk, pairsMax, now: { ...stampOf(clock, boot), bootId } })
  return { read, store: new StateStore({ disk, clock, boot, bootId, read, onFault }) }
}
