// readState reads the state folder. It reads the newest good image, then the journal of this image and all later journals in order. If the
// newest image is damaged, or a newer version wrote it, readState uses the image before, with all journals since. If there is no good
// image, it uses the journals alone, provided that they begin with a start without state. It reports every part that it does not use,
// with file, offset and reason. It throws at no content.

import type { SavedState } from '../restore/state-port.ts'
import type { Disk } from './files/disk.ts'
import type { FileHeader } from './files/file-format.ts'
import { scanFile, type ScannedFile } from './files/file-reader.ts'
import {
  FILE_OCTETS_MAX,
  findGenerations,
  type Generations,
  imageName,
  journalName,
  JOURNALS_MAX,
} from './files/generations.ts'
import { READERS, type Readers } from './files/record-reader.ts'
import { StateBuilder } from './state-builder.ts'
import type { Moment } from './stamp.ts'

/** A part of the folder that was not used, and the reason. */
export interface PassedOver {
  readonly file: string
  /** Where the unused part begins. The octets before are good. */
  readonly offset: number
  readonly reason: string
  /** True for the unfinished end of a journal whose process was killed. This is no damage. */
  readonly isNormal: boolean
}

export interface ReadState {
  readonly state: SavedState | undefined
  readonly passedOver: readonly PassedOver[]
  /** The generation of the image that was read. Undefined: no image was good. */
  readonly image: number | undefined
  readonly generations: Generations
}

export interface ReadStateOptions {
  readonly disk: Disk
  /** The most pairs that are returned. */
  readonly pairsMax: number
  readonly now: Moment
  readonly readers?: Readers
}

export function readState(options: ReadStateOptions): ReadState {
  return new FolderReader(options).read()
}

/** The journal that would follow without a gap. */
interface Expected {
  readonly run: number
  readonly generation: number
  /** Length of the journal before, in octets. Undefined: the expected journal is that of the image. */
  readonly octetsBefore: number | undefined
}

class FolderReader {
  readonly #options: ReadStateOptions
  readonly #readers: Readers
  readonly #passedOver: PassedOver[] = []

  constructor(options: ReadStateOptions) {
    this.#options = options
    this.#readers = options.readers ?? READERS
  }

  read(): ReadState {
    const generations = this.#find()
    for (const image of generations.images.toReversed()) {
      const state = this.#readFrom(image, generations)
      if (state !== undefined) return this.#result(state, image, generations)
    }
    return this.#result(this.#readJournalsAlone(generations), undefined, generations)
  }

  #find(): Generations {
    try {
      return findGenerations(this.#options.disk.names())
    } catch (error) {
      this.#pass('.', 0, reasonOf(error))
      return findGenerations([])
    }
  }

  #result(
    state: SavedState | undefined,
    image: number | undefined,
    generations: Generations,
  ): ReadState {
    return { state, passedOver: this.#passedOver, image, generations }
  }

  /** Reads an image and all journals since. Returns undefined if the image is not good. */
  #readFrom(image: number, { journals }: Generations): SavedState | undefined {
    const name = imageName(image)
    const file = this.#scan(name, 'image', image)
    if (file === undefined) return undefined
    const builder = new StateBuilder(this.#options)
    const fault = file.fault ?? faultAt(builder.add(file, true))
    const needs = builder.imageNeeds
    if (fault !== undefined || needs === undefined) {
      const { offset, reason } = fault ?? { offset: file.goodOctets, reason: 'expected its end' }
      this.#pass(name, offset, reason)
      return undefined
    }
    const { run } = file.header
    const expected = { run, generation: image, octetsBefore: undefined }
    const later = journals.filter((each) => each >= image)
    if (later[0] !== image) this.#pass(journalName(image), 0, 'it is missing')
    return this.#readJournals(builder, later, expected, needs)
  }

  #readJournalsAlone({ journals, images }: Generations): SavedState | undefined {
    let readable = images.length
    const isStart = (each: number): boolean => {
      const file = this.#scan(journalName(each), 'journal', each)
      if (file !== undefined) readable++
      return file?.header.startsEmpty === true
    }
    const said = this.#passedOver.length
    const start = journals.findLastIndex(isStart)
    if (start < 0) {
      // A process that ended before its first record lost nothing.
      const isMissed = readable > 0 || this.#passedOver.some(({ isNormal }) => !isNormal)
      if (isMissed && journals.length + images.length > 0) {
        this.#pass('.', 0, 'no good image, and the journals do not reach back to the beginning')
      }
      return undefined
    }
    // The read below reports the faults of these journals.
    this.#passedOver.length = said
    return this.#readJournals(new StateBuilder(this.#options), journals.slice(start), undefined, 0)
  }

  /** `needs`: how many octets of the first journal must be good. If fewer are good, the journal begins a new run. */
  #readJournals(
    builder: StateBuilder,
    journals: readonly number[],
    first: Expected | undefined,
    needs: number,
  ): SavedState {
    let expected = first
    for (const generation of journals.slice(0, JOURNALS_MAX)) {
      const name = journalName(generation)
      const file = this.#scan(name, 'journal', generation)
      if (file === undefined) {
        expected = undefined
        continue
      }
      const isWhole = expected?.octetsBefore !== undefined || file.goodOctets >= needs
      const fault = builder.add(file, !isWhole || !follows(file.header, expected))
      if (file.fault !== undefined) {
        const { offset, reason, kind } = file.fault
        this.#pass(name, offset, reason, kind === 'cut')
      }
      if (fault !== undefined) this.#pass(name, fault.at, fault.reason)
      const { run } = file.header
      expected =
        fault === undefined && isWhole
          ? { run, generation: generation + 1, octetsBefore: file.goodOctets }
          : undefined
    }
    const left = journals[JOURNALS_MAX]
    if (left !== undefined) this.#pass(journalName(left), 0, `expected at most ${JOURNALS_MAX}`)
    const state = builder.finish()
    if (builder.leftOut > 0) {
      this.#pass('.', 0, `${builder.leftOut} pairs more than limits.pairs`)
    }
    return state
  }

  /** Returns a file if at least a part of it can be read. Otherwise reports the reason and returns undefined. */
  #scan(name: string, kind: FileHeader['kind'], generation: number): ScannedFile | undefined {
    let octets: Uint8Array
    try {
      octets = this.#options.disk.read(name, FILE_OCTETS_MAX)
    } catch (error) {
      this.#pass(name, 0, reasonOf(error))
      return undefined
    }
    const scanned = scanFile(octets, this.#readers)
    if (scanned.kind === 'bad') {
      const { offset, reason, kind: what } = scanned.fault
      this.#pass(name, offset, reason, what === 'cut' && kind === 'journal')
      return undefined
    }
    const { header } = scanned.file
    if (header.kind === kind && header.generation === generation) return scanned.file
    const found = `${header.kind} of generation ${header.generation}`
    this.#pass(name, 0, `found ${found}, expected ${kind} of generation ${generation}`)
    return undefined
  }

  #pass(file: string, offset: number, reason: string, isNormal = false): void {
    this.#passedOver.push({ file, offset, reason, isNormal })
  }
}

/** Returns true if the journal continues the run of the file before, so that rows mean the same in both. */
function follows(header: FileHeader, expected: Expected | undefined): boolean {
  if (expected === undefined) return false
  const { run, generation, octetsBefore } = expected
  return (
    header.run === run &&
    header.generation === generation &&
    (octetsBefore === undefined || header.octetsBefore === octetsBefore)
  )
}

function faultAt(
  fault: { readonly at: number; readonly reason: string } | undefined,
): { readonly offset: number; readonly reason: string } | undefined {
  return fault === undefined ? undefined : { offset: fault.at, reason: fault.reason }
}

/** Returns the message of the system without the path, because the report has the path already. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.message.replace(/, \w+( '.*')?$/, '')
}
