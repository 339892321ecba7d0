// Joins the external resources of files, of the admin API and of the program under one set of names. Lists have the resources of the API
// first, so that a fault of a bound names a resource of a file.

import type { Clock } from '../core/clock.ts'
import type { Fault, Position } from '../core/errors.ts'
import { difference, joined } from '../core/tables/list-difference.ts'
import type { PlacedPath } from '../config/config.ts'
import type { ResourceControl } from '../enforcement/resource-control.ts'
import { ResourceItems } from '../endpoints/resource-items.ts'
import { repeatedNames, type ResourceRecord } from '../endpoints/resources.ts'
import type { Log } from '../telemetry/log.ts'
import { ApiResources, type ResourceKeeper, type ResourceChange } from './api-resources.ts'
import type { LastGoodTexts } from './files/last-good-texts.ts'
import { SourceFiles } from './files/source-files.ts'

export interface ResourceSourcesOptions {
  readonly paths: readonly PlacedPath[]
  readonly clock: Clock
  readonly log: Log
  readonly control: ResourceControl
  readonly keeper: ResourceKeeper | undefined
  /** The texts of files, which are kept over restarts. */
  readonly texts: LastGoodTexts | undefined
  /** `limits.resources`. */
  readonly countMax: number
  /** How many addresses the API can add to the configured addresses. */
  readonly addressesMax: () => number
  readonly onChanged: (change: ResourceChange) => void
}

export class ResourceSources {
  readonly files: SourceFiles<ResourceRecord>
  readonly api: ApiResources
  readonly #control: ResourceControl

  constructor(options: ResourceSourcesOptions) {
    const { paths, clock, control, texts } = options
    this.#control = control
    const names: ResourceNames = new ResourceNames((name) => this.api.has(name))
    const readers = new Map<string, ResourceItems>()
    this.files = new SourceFiles({
      paths,
      clock,
      texts,
      list: 'resources',
      parse: (text, file) => {
        const reader = readers.get(file) ?? new ResourceItems(file)
        readers.set(file, reader)
        const { resources: items, faults } = reader.parse(text)
        return { items, faults }
      },
      together: (records) => names.check(records),
    })
    this.api = new ApiResources({ ...options, files: names })
  }

  /** The resources in force. */
  get items(): readonly ResourceRecord[] {
    return joined([this.api.records, this.files.items])
  }

  /** The resources that will be in force next. */
  get proposed(): readonly ResourceRecord[] {
    return joined([this.api.records, this.files.proposed])
  }

  /** Puts the resources of files in force. Resources of the API are put in force when they are set. */
  apply(): void {
    this.#control.apply(this.files.items)
  }
}

/** Checks that each name has one resource. Remembers the last list of the files, so that a new list costs only its difference. */
class ResourceNames {
  readonly #isTaken: (name: string) => boolean
  #listed: readonly ResourceRecord[] = []
  /** True if the last list had no fault. Only then is it enough to check the difference. */
  #isSound = true
  readonly #byName = new Map<string, ResourceRecord>()

  /** `isTaken` returns true if the admin API or the program has the name. */
  constructor(isTaken: (name: string) => boolean) {
    this.#isTaken = isTaken
  }

  /** How many resources the last list has. */
  get count(): number {
    return this.#listed.length
  }

  /** The resource of the last list with this name. */
  find(name: string): ResourceRecord | undefined {
    return this.#byName.get(name)
  }

  /**
   * Returns a fault for each name with two resources: for the later resource in files, or for the file's resource if the other resource is
   * of the API.
   */
  check(listed: readonly ResourceRecord[]): readonly Fault[] {
    const { before, after } = difference(this.#listed, listed)
    if (!this.#isSound) return this.#checkAll(listed)
    for (const { name } of before) this.#byName.delete(name)
    this.#listed = listed
    for (const record of after) {
      if (this.#byName.has(record.name) || this.#isTaken(record.name)) return this.#checkAll(listed)
      this.#byName.set(record.name, record)
    }
    return []
  }

  #checkAll(listed: readonly ResourceRecord[]): readonly Fault[] {
    this.#listed = listed
    this.#byName.clear()
    for (const record of listed) {
      if (!this.#byName.has(record.name)) this.#byName.set(record.name, record)
    }
    const taken = listed.filter(({ name }) => this.#isTaken(name)).map(takenFault)
    const faults = [...taken, ...repeatedNames(listed)]
    this.#isSound = faults.length === 0
    return faults
  }
}

function takenFault({
  name,
  position,
}: {
  readonly name: string
  readonly position: Position
}): Fault {
  const message = `found the name ${name}, which is that of a resource of the admin API: remove it there first`
  return { position, message }
}
