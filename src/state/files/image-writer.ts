// ImageWriter writes one image. Changes during the image are in its journal and complete the image. Therefore the image becomes valid only
// when its own records and the journal up to its end are on the disk. The file is then synced and renamed, and the folder is synced.

import type { ImageSink, PairRecord, SavedDocument, SavedNumber } from '../../restore/state-port.ts'
import { type Disk, InPlace } from './disk.ts'
import type { StateFaults } from '../faults.ts'
import type { FrameFile } from './frame-file.ts'
import { imageName, unfinishedName } from './generations.ts'

export interface ImageWriterOptions {
  readonly disk: Disk
  readonly generation: number
  readonly file: FrameFile
  readonly faults: StateFaults
  /** Writes and syncs the journal. Resolves to the journal's length in octets, or to undefined if the journal is broken. */
  readonly syncJournal: () => Promise<number | undefined>
  /** Called once, at the end of the image. `place`: the place of a good image. */
  readonly onEnd: (end: ImageEnd, place?: InPlace) => void
}

/** `good`: the image is valid. `failed`: the disk refused it. `abandoned`: the caller abandoned it, or its journal is broken. */
export type ImageEnd = 'good' | 'failed' | 'abandoned'

export class ImageWriter implements ImageSink {
  readonly generation: number
  readonly #options: ImageWriterOptions
  readonly #file: FrameFile
  #ended: Promise<void> | undefined

  constructor(options: ImageWriterOptions) {
    this.#options = options
    this.generation = options.generation
    this.#file = options.file
  }

  get octets(): number {
    return this.#file.octets
  }

  get isFull(): boolean {
    return this.#file.mustWait()
  }

  numbers(numbers: readonly SavedNumber[]): void {
    for (const number of numbers) {
      // One call can have a million numbers.
      if (this.#file.mustWait()) this.#file.writeNow(this.#file.filling)
      this.#file.add((to) => to.number(number))
    }
  }

  pair(record: PairRecord): void {
    if (!this.#file.isBroken && !this.#file.filling.pair(record)) this.#file.refuse()
  }

  until(row: number, until: number): void {
    this.#file.add((to) => to.until(row, until))
  }

  gone(row: number): void {
    this.#file.add((to) => to.gone(row))
  }

  document(document: SavedDocument): void {
    this.#file.add((to) => to.document(document))
  }

  end(): void {
    this.#ended ??= this.#finish()
  }

  abandon(): void {
    this.#ended ??= this.#discard()
  }

  /** Abandons an image in progress, and waits for its end. */
  async close(): Promise<void> {
    this.abandon()
    await this.#ended
  }

  async #finish(): Promise<void> {
    const { disk, faults, onEnd, generation } = this.#options
    const journalOctets = await this.#options.syncJournal()
    if (journalOctets === undefined) {
      await this.#discard()
      return
    }
    this.#file.add((to) => to.imageEnd(journalOctets))
    await this.#file.drained()
    await this.#file.sync()
    if (this.#file.isBroken) {
      await this.#discard()
      return
    }
    await this.#file.close()
    const [unfinished, name] = [unfinishedName(generation), imageName(generation)]
    const place = new InPlace(disk, name, unfinished)
    try {
      await disk.rename(unfinished, name)
      await disk.sync()
    } catch (error) {
      faults.addError(error)
      onEnd('failed')
      return
    }
    onEnd('good', place)
  }

  async #discard(): Promise<void> {
    const end = this.#file.isBroken ? 'failed' : 'abandoned'
    await this.#file.close()
    try {
      await this.#options.disk.remove(unfinishedName(this.generation))
    } catch (error) {
      this.#options.faults.addError(error)
    }
    this.#options.onEnd(end)
  }
}
