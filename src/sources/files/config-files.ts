// Holds all source files (policies, endpoints and resources) and the items that the program and the admin API add. `ConfigSources` decides
// when a change is put in force.

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
import { withInterfaceAddresses } from './endpoint-files.ts'
import { LastGoodTexts, type FileStanding, type TextKeeper } from './last-good-texts.ts'
import { policyKey, policyReader, repeatedPolicies } from './policy-files.ts'
import { isObjectName } from '../../core/object-names.ts'
import { ResourceSources, type ResourceSourcesOptions } from '../resource-sources.ts'
import { SourceFiles, type SourceFile } from './source-files.ts'

export interface ConfigFilesOptions {
  readonly config: Config
  readonly clock: Clock
  readonly log: Log
  readonly resources: ResourceControl
  /** Stores the resources of the admin API over restarts. */
  readonly resourceKeeper?: ResourceKeeper | undefined
  /** Stores texts of files over restarts. */
  readonly fileKeeper?: TextKeeper | undefined
  readonly addressesMax: ResourceSourcesOptions['addressesMax']
  /** Receives each change of the resources of the API. */
  readonly onResource: ResourceSourcesOptions['onChanged']
}

/** Objects of a cluster are kept by their own source (kubernetes/kept-objects.ts). */
function withoutObjects({ saved, keep }: TextKeeper): TextKeeper {
  return { saved: new Map([...saved].filter(([path]) => !isObjectName(path))), keep }
}

export class ConfigFiles {
  readonly policies: SourceFiles<Policy>
  readonly endpoints: SourceFiles<FileRecord>
  readonly resources: ResourceSources
  /** The texts of the files in force, which are kept over restarts. */
  readonly texts: LastGoodTexts | undefined

  constructor(options: ConfigFilesOptions) {
    const { config, clock, log, fileKeeper } = options
    const texts = fileKeeper && new LastGoodTexts(withoutObjects(fileKeeper))
    this.texts = texts
    this.policies = new SourceFiles({
      paths: config.policies.paths,
      clock,
      parse: policyReader(config, log),
      texts,
      together: repeatedPolicies,
      keyOf: policyKey,
      yields: isObjectName,
    })
    this.endpoints = new SourceFiles({
      paths: config.endpoints.files,
      clock,
      parse: (text, file) => withInterfaceAddresses(parseEndpoints(text, file)),
      list: 'endpoints',
      texts,
      together: overlapFaults,
      yields: isObjectName,
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

  /** States of the files of endpoints and resources. */
  get recordStates(): readonly Pick<SourceFile<unknown>, 'state'>[] {
    return [...this.endpoints.files, ...this.resources.files.files]
  }

  /** The present faults of folders, endpoints and resources. */
  get recordFaults(): readonly Fault[] {
    const folders = this.all.flatMap(({ folderFaults }) => folderFaults)
    return [...folders, ...this.endpoints.faults, ...this.resources.files.faults]
  }

  /** True if there is a source file at this path. */
  has(path: string): boolean {
    return this.all.some((files) => files.standingOf(path) !== 'gone')
  }

  /** Reads every file. Returns the faults that no last good text makes up for. */
  load(): readonly Fault[] {
    return this.all.flatMap((files) => files.loadAll())
  }

  /** Puts the proposals in force. Returns for each kind if its items have changed. */
  accept(): Readonly<Record<'policies' | 'endpoints' | 'resources', boolean>> {
    const policies = this.policies.accept()
    const endpoints = this.endpoints.accept()
    const resources = this.resources.files.accept()
    this.texts?.accept((path) => this.#standingOf(path))
    return { policies, endpoints, resources }
  }

  /** True if a file differs from its version in force. At the start, the version that was in force last is compared. */
  isNew(path: string): boolean {
    return this.all.some((files) => files.isAhead(path)) && this.texts?.isNew(path) !== false
  }

  #standingOf(path: string): FileStanding {
    for (const files of this.all) {
      const standing = files.standingOf(path)
      if (standing !== 'gone') return standing
    }
    return 'gone'
  }
}
