// StateBuilder builds the state from records; the last record of each key is valid. The row of a pair is its key within one run of records
// (file-format.ts). After a gap, and in the journal of another process, a new run begins. Pairs of earlier runs then stay as they are. In
// the new run, a change of a row is used only after a whole record of its pair. So the result has no pair that was never written.

import type { SavedDocument, SavedNumber, SavedPairs, SavedState } from '../restore/state-port.ts'
import { LABEL_RULES, labelsOfNow } from '../identity/label-rules.ts'
import { readRecords, type ScannedFile } from './files/file-reader.ts'
import { PairColumns } from './files/pair-columns.ts'
import type { PairPlace, RecordFault, RecordVisitor } from './files/record-reader.ts'
import { elapsedSeconds, isSameBoot, shiftOf, type Moment } from './stamp.ts'

/** The builder reads at most this many times `pairsMax` pairs, because two runs can have the same pair. */
const READ_PER_GIVEN = 2
const INT32_MIN = -(2 ** 31)
const INT32_MAX = 2 ** 31 - 1

export class StateBuilder implements RecordVisitor {
  /** How many pairs were dropped because there was no room. */
  leftOut = 0
  /** How many changes were dropped because their run has no whole record of the pair before. */
  strays = 0
  /** How many records of each kind were read. */
  readonly counts = { pair: 0, until: 0, gone: 0, number: 0, document: 0 }
  /** How many octets of its journal the last image needs to be complete. Undefined until the last record of the image was read. */
  imageNeeds: number | undefined
  readonly #pairsMax: number
  readonly #now: Moment
  readonly #columns = new PairColumns()
  readonly #numbers = new Map<number, readonly string[]>()
  readonly #documents: Readonly<Record<SavedDocument['kind'], Map<string, string>>> = {
    endpoint: new Map(),
    'source-file': new Map(),
  }
  #shift = 0
  /** The version of the label rules in the header of the present file. */
  #labelRules = LABEL_RULES
  #age = Infinity
  #isThisBoot = false

  constructor(options: { readonly pairsMax: number; readonly now: Moment }) {
    this.#pairsMax = options.pairsMax
    this.#now = options.now
  }

  /** Reads a file. `isNewRun`: the rows of this file have nothing to do with the rows of files before. */
  add(file: ScannedFile, isNewRun: boolean): RecordFault | undefined {
    const { header, octets, last } = file
    const isThisBoot = isSameBoot(header.bootId, this.#now.bootId)
    this.#columns.beginFile(octets, this.#pairsMax * READ_PER_GIVEN)
    if (isNewRun) this.#columns.beginRun()
    this.imageNeeds = undefined
    this.#labelRules = header.labelRules
    this.#age = elapsedSeconds(last, isThisBoot, this.#now)
    this.#isThisBoot = isThisBoot
    return readRecords(file, this, (stamp) => {
      this.#shift = shiftOf(stamp, isThisBoot, this.#now)
    })
  }

  pair(place: PairPlace): void {
    this.counts.pair++
    const bound = this.#pairsMax * READ_PER_GIVEN
    if (!this.#columns.set(place, this.#translate(place.until), bound)) this.leftOut++
  }

  until(row: number, until: number): void {
    this.counts.until++
    if (!this.#columns.setUntil(row, this.#translate(until))) this.strays++
  }

  gone(row: number): void {
    this.counts.gone++
    if (!this.#columns.remove(row)) this.strays++
  }

  number(id: number, labels: readonly string[]): void {
    this.counts.number++
    this.#numbers.set(id, labelsOfNow(labels, this.#labelRules))
  }

  document({ kind, key, text }: SavedDocument): void {
    this.counts.document++
    if (text === undefined) this.#documents[kind].delete(key)
    else this.#documents[kind].set(key, text)
  }

  imageEnd(journalOctets: number): void {
    this.imageNeeds = journalOctets
  }

  finish(): SavedState {
    const numbers: SavedNumber[] = []
    for (const [id, labels] of this.#numbers) numbers.push({ id, labels })
    return {
      isThisBoot: this.#isThisBoot,
      numbers,
      endpoints: this.#documents.endpoint,
      sourceFiles: this.#documents['source-file'],
      pairs: this.#finishPairs(),
      age: this.#age,
    }
  }

  #finishPairs(): SavedPairs {
    const pairs = this.#columns.pairs(this.#pairsMax * READ_PER_GIVEN)
    if (pairs.count <= this.#pairsMax) return pairs
    this.leftOut += pairs.count - this.#pairsMax
    return { ...pairs, count: this.#pairsMax }
  }

  #translate(until: number): number {
    return Math.max(INT32_MIN, Math.min(INT32_MAX, until + this.#shift))
  }
}
