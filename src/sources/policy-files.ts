// Policies from files. Each file is taken whole or not at all: one that does not parse keeps the last good
// version of itself in force and says so (SEMANTICS 2). At the start nothing is in force yet, so there a
// fault is an error.

import type { Clock } from '../core/clock.ts'
import { InvalidInputError, type Fault, type Position } from '../core/errors.ts'
import type { PlacedPath } from '../config/config.ts'
import { readTextFile } from '../config/files.ts'
import { loadPolicies } from '../policy/load.ts'
import type { Policy } from '../policy/rule.ts'
import { pathFaults, scanFiles } from './scan-files.ts'
import { SettledFiles } from './settled-files.ts'

export interface PolicyFile {
  readonly path: string
  /** In force: of the file as it is, or of its last good version. */
  readonly policies: readonly Policy[]
  readonly state: 'in-force' | 'last-good' | 'rejected'
  readonly faults: readonly Fault[]
}

export interface PolicyFilesOptions {
  readonly paths: readonly PlacedPath[]
  readonly clock: Clock
}

export class PolicyFiles {
  readonly #paths: readonly PlacedPath[]
  readonly #clock: Clock
  readonly #settled = new SettledFiles()
  readonly #files = new Map<string, PolicyFile>()

  constructor(options: PolicyFilesOptions) {
    this.#paths = options.paths
    this.#clock = options.clock
  }

  get files(): Iterable<PolicyFile> {
    return this.#files.values()
  }

  get policies(): readonly Policy[] {
    return [...this.#files.values()].flatMap((file) => file.policies)
  }

  /** Reads everything; throws InvalidInputError with all faults of all files. */
  loadAll(): void {
    const misplaced = pathFaults(this.#paths)
    if (misplaced.length > 0) throw new InvalidInputError(misplaced)
    const sightings = scanFiles(this.#paths)
    this.#settled.accept(sightings)
    for (const path of sightings.keys()) this.#load(path)
    const faults = [...this.#files.values()].flatMap((file) => file.faults)
    if (faults.length > 0) throw new InvalidInputError(faults)
  }

  /** Looks at the files; returns those that changed, re-read, when a change has settled. */
  poll(): readonly PolicyFile[] {
    const changed: PolicyFile[] = []
    for (const { kind, path } of this.#settled.look(scanFiles(this.#paths), this.#clock.now())) {
      if (kind === 'removed') {
        this.#files.delete(path)
        changed.push({ path, policies: [], state: 'in-force', faults: [] })
      } else {
        changed.push(this.#load(path))
      }
    }
    return changed
  }

  /** Reads all files again at once, whether they look changed or not (SIGHUP). */
  reload(): readonly PolicyFile[] {
    return [...scanFiles(this.#paths).keys()].map((path) => this.#load(path))
  }

  #load(path: string): PolicyFile {
    const before = this.#files.get(path)
    const { policies, faults } = this.#read(path)
    const good = faults.length === 0
    const kept = before?.policies ?? []
    const file: PolicyFile = {
      path,
      policies: good ? policies : kept,
      state: good ? 'in-force' : kept.length > 0 ? 'last-good' : 'rejected',
      faults,
    }
    this.#files.set(path, file)
    return file
  }

  #read(path: string): { readonly policies: readonly Policy[]; readonly faults: readonly Fault[] } {
    const read = readTextFile(path)
    if (read.kind === 'bad') return { policies: [], faults: [read.fault] }
    return loadPolicies(read.text, path, { seen: this.#namesOutside(path) })
  }

  /** Policies of all other files, so that one that is there twice is a fault. */
  #namesOutside(path: string): Map<string, Position> {
    const names = new Map<string, Position>()
    for (const file of this.#files.values()) {
      if (file.path === path) continue
      for (const { kind, namespace, name, position } of file.policies) {
        names.set(`${kind} ${namespace ?? ''}/${name}`, position)
      }
    }
    return names
  }
}
