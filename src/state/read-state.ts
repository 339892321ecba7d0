// Reads the state folder: the newest good image, its journal and all later ones in order; when the newest image is
// damaged, or a newer version wrote it, the one before with all journals since. Without any image the journals alone,
// if they reach back to a start that knew nothing. Whatever is passed over is said, with file, offset and reason;
// nothing that a file may hold makes it throw.

import type { SavedState } from '../restore/state-port.ts'
import type { Disk } from './files/disk.ts'
import type { FileHeader } from './files/file-header.ts'
import { scanFile, type ScannedFile } from './files/file-reader.ts'
import {
  FILE_OCTETS_MAX,
  findGenerations,
  imageName,
  journalName,
  JOURNALS_MAX,
  type Generations,
} from './files/generations.ts'
import { READERS, type Readers } from './files/readers.ts'
import { StateBuilder } from './state-builder.ts'
import type { Moment } from './stamp.ts'

/** What was not read, and why. */
export interface PassedOver {
  readonly file: string
  /** Octets in front of it are good. */
  readonly offset: number
  readonly reason: string
  /** The end of a journal that a process did not finish: nothing is wrong. */
  readonly isNormal: boolean
}

export interface ReadState {
  readonly state: SavedState | undefined
  readonly passedOver: readonly PassedOver[]
  /** The image that was read. */
  readonly image: number | undefined
  readonly generations: Generations
}

export interface ReadStateOptions {
  readonly disk: Disk
  /** Most pairs that are given. */
  readonly pairsMax: number
  readonly now: Moment
  readonly readers?: Readers
}

export function readState(options: ReadStateOptions): ReadState {
  return new FolderReader(options).read()
}

/** The journal that goes on without a hole, or an image before which its own goes. */
interface Expected {
  readonly run: number
  readonly generation: number
  /** Octets of the journal in front of it; undefined for an image's own. */
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

  /** An image with all that follows; undefined when it is not good. */
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
      // A process that ended before its first record leaves nothing to miss.
      const isMissed = readable > 0 || this.#passedOver.some(({ isNormal }) => !isNormal)
      if (isMissed && journals.length + images.length > 0) {
        this.#pass('.', 0, 'no good image, and the journals do not reach back to the beginning')
      }
      return undefined
    }
    // What was wrong with these is said when they are read.
    this.#passedOver.length = said
    return this.#readJournals(new StateBuilder(this.#options), journals.slice(start), undefined, 0)
  }

  /** `needs`: octets of the first journal without which its rows can't be trusted. */
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

  /** A file that can be read at least in part; what stands in the way is said. */
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

/** Whether a journal's rows mean what they meant before. */
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

/** The system's own words without the path, which is said already. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.message.replace(/, \w+( '.*')?$/, '')
}
