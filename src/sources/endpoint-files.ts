// Endpoints from files, all files together: names and addresses must not overlap. A set with a fault leaves
// the last good one in force; at the start it is an error.

import type { Clock } from '../core/clock.ts'
import { InvalidInputError, type Fault } from '../core/errors.ts'
import type { PlacedPath } from '../config/config.ts'
import { readTextFile } from '../config/files.ts'
import type { EndpointRecord } from '../control/endpoint-control.ts'
import {
  overlapFaults,
  parseEndpoints,
  type EndpointRecord as FileRecord,
} from '../endpoints/file.ts'
import { pathFaults, scanFiles } from './scan-files.ts'
import { SettledFiles } from './settled-files.ts'

export class EndpointFiles {
  readonly #paths: readonly PlacedPath[]
  readonly #clock: Clock
  readonly #settled = new SettledFiles()
  #records: readonly EndpointRecord[] = []
  #faults: readonly Fault[] = []

  constructor(options: { readonly paths: readonly PlacedPath[]; readonly clock: Clock }) {
    this.#paths = options.paths
    this.#clock = options.clock
  }

  /** The last good set. */
  get records(): readonly EndpointRecord[] {
    return this.#records
  }

  /** What is wrong with the files as they are now. */
  get faults(): readonly Fault[] {
    return this.#faults
  }

  /** Reads everything; throws InvalidInputError with all faults. */
  loadAll(): void {
    const misplaced = pathFaults(this.#paths)
    if (misplaced.length > 0) throw new InvalidInputError(misplaced)
    this.#settled.accept(scanFiles(this.#paths))
    this.reload()
    if (this.#faults.length > 0) throw new InvalidInputError(this.#faults)
  }

  /** Whether a change settled and was read. */
  poll(): boolean {
    const settled = this.#settled.look(scanFiles(this.#paths), this.#clock.now())
    if (settled.length > 0) this.reload()
    return settled.length > 0
  }

  /** Reads all files again; a faulty set changes nothing but the faults. */
  reload(): void {
    const records: FileRecord[] = []
    const faults: Fault[] = []
    for (const path of scanFiles(this.#paths).keys()) {
      const read = readTextFile(path)
      if (read.kind === 'bad') {
        faults.push(read.fault)
        continue
      }
      const file = parseEndpoints(read.text, path)
      records.push(...file.endpoints)
      faults.push(...file.faults)
    }
    if (faults.length === 0) faults.push(...overlapFaults(records))
    this.#faults = faults
    if (faults.length === 0) this.#records = records.map(toRecord)
  }
}

function toRecord({ name, addresses, labels, hook, audit }: FileRecord): EndpointRecord {
  return { name, addresses, labels, hook, audit }
}
