// Everything that gives external resources: files, the admin API and the program, under one set of names. What it is asked
// for as a list has those of the API first, so that where a bound is passed the one too many is a file's.

import type { Clock } from '../core/clock.ts'
import { joined } from '../core/tables/list-difference.ts'
import type { PlacedPath } from '../config/config.ts'
import type { ResourceControl } from '../enforcement/resource-control.ts'
import { ResourceItems } from '../endpoints/resource-items.ts'
import type { ResourceRecord } from '../endpoints/resources.ts'
import type { Log } from '../telemetry/log.ts'
import { ApiResources, type ResourceKeeper, type ResourceNews } from './api-resources.ts'
import type { GoodTexts } from './files/good-texts.ts'
import { keptReading } from './files/kept-reading.ts'
import { ResourceNames } from './resource-names.ts'
import { SourceFiles } from './files/source-files.ts'

export interface ResourceSourcesOptions {
  readonly paths: readonly PlacedPath[]
  readonly clock: Clock
  readonly log: Log
  readonly control: ResourceControl
  readonly keeper: ResourceKeeper | undefined
  /** Texts of files that outlive the process. */
  readonly texts: GoodTexts | undefined
  /** `limits.resources`. */
  readonly countMax: number
  /** How many addresses there may be beside what files have. */
  readonly addressesMax: () => number
  readonly onChanged: (news: ResourceNews) => void
}

export class ResourceSources {
  readonly files: SourceFiles<ResourceRecord>
  readonly api: ApiResources
  readonly #control: ResourceControl

  constructor(options: ResourceSourcesOptions) {
    const { paths, clock, control, texts } = options
    this.#control = control
    const names: ResourceNames = new ResourceNames({ isTaken: (name) => this.api.has(name) })
    const readers = new Map<string, ResourceItems>()
    this.files = new SourceFiles({
      paths,
      clock,
      ...keptReading(texts, (text, file) => {
        const reader = readers.get(file) ?? new ResourceItems(file)
        readers.set(file, reader)
        const { resources: items, faults } = reader.parse(text)
        return { items, faults }
      }),
      together: (records) => names.check(records),
    })
    this.api = new ApiResources({ ...options, files: names })
  }

  /** In force. */
  get items(): readonly ResourceRecord[] {
    return joined([this.api.records, this.files.items])
  }

  /** To be in force next. */
  get proposed(): readonly ResourceRecord[] {
    return joined([this.api.records, this.files.proposed])
  }

  /** Puts those of files in force; those of the API are. */
  apply(): void {
    this.#control.apply(this.files.items)
  }
}
