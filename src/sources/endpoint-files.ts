// Endpoints from files, all files together: names and addresses must not overlap. A set with a fault leaves
// the last good one in force; at the start it is an error.

import type { Clock } from '../core/clock.ts'
import { InvalidInputError, type Fault } from '../core/errors.ts'
import type { PlacedPath } from '../config/config.ts'
import type { EndpointRecord } from '../control/endpoint-control.ts'
import {
  overlapFaults,
  parseEndpoints,
  type EndpointRecord as FileRecord,
} from '../endpoints/file.ts'
import { missingPaths, scanFiles, YAML_ENDINGS } from './scan-files.ts'
import { readText } from './read-text.ts'
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
    const missing = missingPaths(this.#paths)
    if (missing.length > 0) throw new InvalidInputError(missing)
    this.#settled.accept(scanFiles(this.#paths, YAML_ENDINGS))
    this.reload()
    if (this.#faults.length > 0) throw new InvalidInputError(this.#faults)
  }

  /** Whether a change settled and was read. */
  poll(): boolean {
    const settled = this.#settled.look(scanFiles(this.#paths, YAML_ENDINGS), this.#clock.now())
    if (settled.length > 0) this.reload()
    return settled.length > 0
  }

  /** Reads all files again; a faulty set changes nothing but the faults. */
  reload(): void {
    const records: FileRecord[] = []
    const faults: Fault[] = []
    for (const path of scanFiles(this.#paths, YAML_ENDINGS).keys()) {
      const text = readText(path)
      if (typeof text !== 'string') {
        faults.push(text)
        continue
      }
      const file = parseEndpoints(text, path)
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
