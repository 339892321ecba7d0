// Policies, endpoints and resources from files and from the program itself, put in force: at the start all or nothing, later
// whenever a change has settled, and what the program gives at once. A file with a fault keeps its last good version, a
// configuration past a bound is refused whole, and an endpoint that loses its last policy is told as a flow.

import type { Clock } from '../core/clock.ts'
import { formatFault, InvalidInputError, type Fault } from '../core/errors.ts'
import type { Auditable, AuditControl } from '../control/audit-control.ts'
import type { EndpointControl } from '../control/endpoint-control.ts'
import type { FlowRing } from '../control/flow-ring.ts'
import type { PolicyControl } from '../control/policy-control.ts'
import type { ResourceControl } from '../control/resource-control.ts'
import type { Config } from '../config/config.ts'
import {
  overlapFaults,
  parseEndpoints,
  type EndpointRecord as FileRecord,
} from '../endpoints/file.ts'
import type { ResourceRecord } from '../endpoints/resources.ts'
import type { Policy } from '../policy/rule.ts'
import type { Log } from '../telemetry/log.ts'
import type { ApiResources, ResourceKeeper, ResourceNews } from './api-resources.ts'
import { auditedRecords } from './audited-records.ts'
import { GoodTexts, type Standing, type TextKeeper } from './good-texts.ts'
import { readGiven, type SourceEdit } from './given.ts'
import { withInterfaceAddresses } from './interface-addresses.ts'
import { keptReading } from './kept-reading.ts'
import { tellLostPolicies } from './lost-policies.ts'
import {
  hasNoOther,
  policyReader,
  readingOf,
  repeatedPolicies,
  type PolicyFile,
} from './policy-files.ts'
import { PolicyPorts } from './policy-ports.ts'
import { ResourceSources } from './resource-sources.ts'
import type { SourceAges, SourceAgesOptions } from './source-ages.ts'
import { SourceBounds } from './source-bounds.ts'
import { SourceFiles, type SourceFile } from './source-files.ts'
import { SourceWatch } from './source-watch.ts'

export interface ConfigSourcesOptions {
  readonly config: Config
  readonly clock: Clock
  readonly log: Log
  readonly policies: PolicyControl
  readonly endpoints: EndpointControl
  readonly resources: ResourceControl
  /** Keeps what the admin API gives over restarts. */
  readonly resourceKeeper?: ResourceKeeper | undefined
  /** Keeps texts of files over restarts. */
  readonly fileKeeper?: TextKeeper | undefined
  readonly audit: AuditControl
  readonly flows: FlowRing
  /** Sources fell silent for longer than `sources.max-age`, or were heard again. */
  readonly onSilence: SourceAgesOptions['onChange']
  /** Something was put in force: labels are to be moved. */
  readonly onApplied: () => void
  /** The same, when it was external resources alone. */
  readonly onResources: () => void
}

export class ConfigSources {
  readonly #policies: SourceFiles<Policy>
  readonly #endpoints: SourceFiles<FileRecord>
  readonly #resources: ResourceSources
  readonly #to: ConfigSourcesOptions
  readonly #watch: SourceWatch
  readonly #ports = new PolicyPorts()
  readonly #texts: GoodTexts | undefined
  readonly #bounds: SourceBounds
  #refusal: readonly Fault[] = []
  #records: ReadonlyMap<string, FileRecord> = new Map()
  #started = false
  /** Whether endpoints were put in force once. */
  #isApplied = false
  /** Addresses that resources of the API may have beside all that is configured. */
  #addressRoom = 0

  constructor(options: ConfigSourcesOptions) {
    const { config, clock } = options
    this.#to = options
    const texts = options.fileKeeper && new GoodTexts(options.fileKeeper)
    this.#texts = texts
    this.#bounds = new SourceBounds(config, options.policies.identityLabels)
    this.#policies = new SourceFiles({
      paths: config.policies.paths,
      clock,
      ...keptReading(texts, policyReader(config, options.log)),
      together: repeatedPolicies,
      isWithin: hasNoOther,
    })
    this.#endpoints = new SourceFiles({
      paths: config.endpoints.files,
      clock,
      ...keptReading(texts, (text, file) => withInterfaceAddresses(parseEndpoints(text, file))),
      together: overlapFaults,
    })
    this.#resources = new ResourceSources({
      paths: config.resources.files,
      clock,
      log: options.log,
      control: options.resources,
      keeper: options.resourceKeeper,
      texts,
      countMax: config.limits.resources,
      addressesMax: () => this.#addressRoom,
      onChanged: (news) => this.#resourcesChanged(news),
    })
    const files = {
      policies: this.#policies,
      endpoints: this.#endpoints,
      resources: this.#resources.files,
    }
    this.#watch = new SourceWatch({ ...options, files, onChanged: () => this.#applyChange() })
  }

  get ages(): SourceAges {
    return this.#watch.ages
  }

  get apiResources(): ApiResources {
    return this.#resources.api
  }

  /** Policy files as they are shown: those that a refusal keeps out say why. */
  get policyFiles(): readonly PolicyFile[] {
    return this.#policies.files.map(({ path, items, state, faults }) => {
      const isRefused = state !== 'in-force' && faults.length === 0
      return { path, policies: items, state, faults: isRefused ? this.#refusal : faults }
    })
  }

  /** Texts of files in force that outlive the process. */
  get fileTexts(): Pick<GoodTexts, 'kept' | 'tooLong'> | undefined {
    return this.#texts
  }

  /** States of files of endpoints and resources. */
  get recordFiles(): readonly Pick<SourceFile<unknown>, 'state'>[] {
    return [...this.#endpoints.files, ...this.#resources.files.files]
  }

  /** Of folders, of endpoints and resources, and of everything together. */
  get recordFaults(): readonly Fault[] {
    const folders = this.#all.flatMap(({ folderFaults }) => folderFaults)
    const { files } = this.#resources
    return [...folders, ...this.#endpoints.faults, ...files.faults, ...this.#refusal]
  }

  /** Files that say nothing, or are not there, of which somebody may not know. */
  get warnings(): readonly string[] {
    return [...this.#all.flatMap(({ warnings }) => warnings), ...this.apiResources.leftOut]
  }

  /** Whether what the files ask for passes a bound, so that what was in force before still is. */
  get isRefused(): boolean {
    return this.#refusal.length > 0
  }

  /** Reads everything; throws InvalidInputError with all faults of all files. */
  load(): void {
    const found = this.#all.flatMap((files) => files.loadAll())
    const faults = found.length > 0 ? found : this.#boundFaults()
    if (faults.length > 0) throw new InvalidInputError(faults)
    for (const fault of [...this.#policies.faults, ...this.recordFaults]) {
      const message = 'file refused, what was in force before the start stays'
      this.#to.log.warn({ fault: formatFault(fault) }, message)
    }
    this.#watch.tellHeard()
    this.#measureRoom()
    this.apiResources.restore()
  }

  /** Puts what was read in force; whether that is another configuration than before. */
  apply(): boolean {
    const { endpoints, onApplied } = this.#to
    const policiesChanged = this.#policies.accept()
    const resourcesChanged = this.#resources.files.accept()
    const endpointsChanged = this.#endpoints.accept()
    this.#resources.apply()
    this.#measureRoom()
    this.#texts?.inForce((path) => this.#standingOf(path))
    this.#setPolicies()
    if (!this.#isApplied || endpointsChanged || !endpoints.isComplete) this.#applyEndpoints()
    this.#isApplied = true
    onApplied()
    return policiesChanged || endpointsChanged || resourcesChanged
  }

  /**
   * Takes what the program gives or takes back, besides the files; before the start it comes into force with
   * them. Throws InvalidInputError with everything that is wrong, and then nothing has changed.
   */
  edit(edit: SourceEdit): void {
    const { policies, endpoints, faults } = readGiven(edit, readingOf(this.#to.config.policies))
    if (faults.length > 0) throw new InvalidInputError(faults)
    const given = [this.#policies.give(policies), this.#endpoints.give(endpoints)]
    const found = given.flatMap((each) => each.faults)
    const refused = found.length > 0 ? found : this.#boundFaults()
    if (refused.length > 0) {
      for (const { undo } of given.reverse()) undo()
      throw new InvalidInputError(refused)
    }
    if (!this.#started) return
    this.#refusal = []
    this.#applyTold()
  }

  start(): void {
    this.#started = true
    this.#watch.start()
  }

  stop(): void {
    this.#started = false
    this.#watch.stop()
    this.apiResources.stop()
  }

  /** The record of an endpoint as its file has it. */
  recordOf(name: string): Auditable | undefined {
    return this.#records.get(name)
  }

  /** Reads everything again, whether it looks changed or not (SIGHUP); no file in the middle of an edit. */
  reload(): void {
    if (this.#started) this.#watch.reload()
  }

  get #all() {
    return [this.#policies, this.#endpoints, this.#resources.files] as const
  }

  #applyChange(): void {
    const { log } = this.#to
    this.#refusal = this.#boundFaults()
    for (const fault of [...this.#policies.faults, ...this.recordFaults]) {
      log.warn({ fault: formatFault(fault) }, 'file refused, what was in force before stays')
    }
    if (!this.isRefused) this.#applyTold()
  }

  /** Puts in force what is proposed, and says what that took from endpoints. */
  #applyTold(): void {
    const { log, policies } = this.#to
    if (!tellLostPolicies(this.#to, () => this.apply())) return
    log.info({ revision: policies.revision }, 'configuration changed')
  }

  #standingOf(path: string): Standing {
    for (const files of this.#all) {
      const standing = files.standingOf(path)
      if (standing !== 'gone') return standing
    }
    return 'gone'
  }

  #boundFaults(): readonly Fault[] {
    return this.#bounds.faults(this.#proposed(this.#resources.proposed))
  }

  #measureRoom(): void {
    this.#addressRoom = this.#bounds.addressRoom(this.#proposed(this.#resources.files.proposed))
  }

  /** What all files ask for, with these resources. */
  #proposed(resources: readonly ResourceRecord[]): Parameters<SourceBounds['faults']>[0] {
    const named = [this.#endpoints.proposed, this.#resources.proposed]
    const policies = this.#ports.resolve(this.#policies.proposed, named)
    return { policies, endpoints: this.#endpoints.proposed, resources }
  }

  #applyEndpoints(): void {
    this.#records = new Map(this.#endpoints.items.map((record) => [record.name, record]))
    this.#to.endpoints.apply(auditedRecords(this.#endpoints.items, this.#to.audit))
  }

  #setPolicies(): void {
    const { policies, endpoints } = this.#to
    const named = [this.#endpoints.items, this.#resources.items]
    policies.setPolicies(this.#ports.resolve(this.#policies.items, named), endpoints.registry)
  }

  /** A resource of the API came, changed or went. */
  #resourcesChanged({ ports, freed }: ResourceNews): void {
    if (ports) this.#setPolicies()
    if (freed && this.#resources.files.hasHeld) {
      this.#resources.files.proposeAgain()
      this.#applyChange()
    }
    this.#to.onResources()
  }
}
