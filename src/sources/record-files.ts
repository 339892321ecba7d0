// Records from files, all files of a kind together (endpoints, resources). A set with a fault leaves the
// last good one in force; at the start it is an error.

import type { Clock } from '../core/clock.ts'
import { InvalidInputError, type Fault } from '../core/errors.ts'
import type { PlacedPath } from '../config/config.ts'
import { readTextFile } from '../config/files.ts'
import { pathFaults, scanFiles } from './scan-files.ts'
import { SettledFiles } from './settled-files.ts'

export interface ParsedRecords<Record> {
  readonly records: readonly Record[]
  readonly faults: readonly Fault[]
}

export interface RecordFilesOptions<Record> {
  readonly paths: readonly PlacedPath[]
  readonly clock: Clock
  readonly parse: (text: string, file: string) => ParsedRecords<Record>
  /** What is wrong with the records of all files together. */
  readonly together: (records: readonly Record[]) => readonly Fault[]
}

export class RecordFiles<Record> {
  readonly #options: RecordFilesOptions<Record>
  readonly #settled = new SettledFiles()
  #records: readonly Record[] = []
  #faults: readonly Fault[] = []

  constructor(options: RecordFilesOptions<Record>) {
    this.#options = options
  }

  /** The last good set. */
  get records(): readonly Record[] {
    return this.#records
  }

  /** What is wrong with the files as they are now. */
  get faults(): readonly Fault[] {
    return this.#faults
  }

  /** Reads everything; throws InvalidInputError with all faults. */
  loadAll(): void {
    const { paths } = this.#options
    const misplaced = pathFaults(paths)
    if (misplaced.length > 0) throw new InvalidInputError(misplaced)
    this.#settled.accept(scanFiles(paths))
    this.reload()
    if (this.#faults.length > 0) throw new InvalidInputError(this.#faults)
  }

  /** Whether a change settled and was read. */
  poll(): boolean {
    const { paths, clock } = this.#options
    const settled = this.#settled.look(scanFiles(paths), clock.now())
    if (settled.length > 0) this.reload()
    return settled.length > 0
  }

  /** Reads all files again; a faulty set changes nothing but the faults. */
  reload(): void {
    const { paths, parse, together } = this.#options
    const records: Record[] = []
    const faults: Fault[] = []
    for (const path of scanFiles(paths).keys()) {
      const read = readTextFile(path)
      if (read.kind === 'bad') {
        faults.push(read.fault)
        continue
      }
      const parsed = parse(read.text, path)
      records.push(...parsed.records)
      faults.push(...parsed.faults)
    }
    if (faults.length === 0) faults.push(...together(records))
    this.#faults = faults
    if (faults.length === 0) this.#records = records
  }
}
