// Files of policies, endpoints and resources, with what the program gives besides them: what they ask for, what is wrong with
// them, and which of them are other than they were in force. `ConfigSources` says when that comes into force.

import type { Clock } from '../../core/clock.ts'
import type { Fault } from '../../core/errors.ts'
import type { ResourceControl } from '../../enforcement/resource-control.ts'
import type { Config } from '../../config/config.ts'
import {
  overlapFaults,
  parseEndpoints,
  type EndpointRecord as FileRecord,
} from '../../endpoints/file.ts'
import type { Policy } from '../../policy/rule.ts'
import type { Log } from '../../telemetry/log.ts'
import type { ResourceKeeper } from '../api-resources.ts'
import { GoodTexts, type Standing, type TextKeeper } from './good-texts.ts'
import { withInterfaceAddresses } from '../interface-addresses.ts'
import { keptReading } from './kept-reading.ts'
import { hasNoOther, policyReader, repeatedPolicies } from './policy-files.ts'
import { ResourceSources, type ResourceSourcesOptions } from '../resource-sources.ts'
import { SourceFiles, type SourceFile } from './source-files.ts'

export interface ConfigFilesOptions {
  readonly config: Config
  readonly clock: Clock
  readonly log: Log
  readonly resources: ResourceControl
  /** Keeps what the admin API gives over restarts. */
  readonly resourceKeeper?: ResourceKeeper | undefined
  /** Keeps texts of files over restarts. */
  readonly fileKeeper?: TextKeeper | undefined
  readonly addressesMax: ResourceSourcesOptions['addressesMax']
  /** A resource of the API came, changed or went. */
  readonly onResource: ResourceSourcesOptions['onChanged']
}

export class ConfigFiles {
  readonly policies: SourceFiles<Policy>
  readonly endpoints: SourceFiles<FileRecord>
  readonly resources: ResourceSources
  /** Texts of files in force that outlive the process. */
  readonly texts: GoodTexts | undefined

  constructor(options: ConfigFilesOptions) {
    const { config, clock, log, fileKeeper } = options
    const texts = fileKeeper && new GoodTexts(fileKeeper)
    this.texts = texts
    this.policies = new SourceFiles({
      paths: config.policies.paths,
      clock,
      ...keptReading(texts, policyReader(config, log)),
      together: repeatedPolicies,
      isWithin: hasNoOther,
    })
    this.endpoints = new SourceFiles({
      paths: config.endpoints.files,
      clock,
      ...keptReading(texts, (text, file) => withInterfaceAddresses(parseEndpoints(text, file))),
      together: overlapFaults,
    })
    this.resources = new ResourceSources({
      paths: config.resources.files,
      clock,
      log,
      control: options.resources,
      keeper: options.resourceKeeper,
      texts,
      countMax: config.limits.resources,
      addressesMax: options.addressesMax,
      onChanged: options.onResource,
    })
  }

  get all() {
    return [this.policies, this.endpoints, this.resources.files] as const
  }

  /** States of files of endpoints and resources. */
  get recordStates(): readonly Pick<SourceFile<unknown>, 'state'>[] {
    return [...this.endpoints.files, ...this.resources.files.files]
  }

  /** Of folders, endpoints and resources, as they are now. */
  get recordFaults(): readonly Fault[] {
    const folders = this.all.flatMap(({ folderFaults }) => folderFaults)
    return [...folders, ...this.endpoints.faults, ...this.resources.files.faults]
  }

  /** Configured files that are not there, and resources of the API that are left out. */
  get warnings(): readonly string[] {
    const gone = this.gone.map((path) => `${path} is not there: nothing of it is in force`)
    return [...gone, ...this.resources.api.leftOut]
  }

  /** Paths of configured files that are not there. */
  get gone(): readonly string[] {
    return this.all.flatMap(({ goneFiles }) => goneFiles)
  }

  /** Reads everything; what is wrong and nothing stands in for. */
  load(): readonly Fault[] {
    return this.all.flatMap((files) => files.loadAll())
  }

  /** What is proposed is in force now; which kinds have anything else than before. */
  accept(): Readonly<Record<'policies' | 'endpoints' | 'resources', boolean>> {
    const policies = this.policies.accept()
    const endpoints = this.endpoints.accept()
    const resources = this.resources.files.accept()
    this.texts?.inForce((path) => this.#standingOf(path))
    return { policies, endpoints, resources }
  }

  /** Whether a file is another than in force, or, at the start, than was in force last. */
  isNew(path: string): boolean {
    return this.all.some((files) => files.isAhead(path)) && this.texts?.isNew(path) !== false
  }

  #standingOf(path: string): Standing {
    for (const files of this.all) {
      const standing = files.standingOf(path)
      if (standing !== 'gone') return standing
    }
    return 'gone'
  }
}
