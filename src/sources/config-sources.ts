// Policies, endpoints and resources from files and from the program itself, put in force: at the start all or nothing, later
// whenever a change has settled, and what the program gives at once. A file with a fault keeps its last good version, a
// configuration past a bound is refused whole, and an endpoint that loses its last policy is told as a flow.

import { formatFault, InvalidInputError, type Fault } from '../core/errors.ts'
import type { Auditable, AuditControl } from '../enforcement/audit-control.ts'
import type { EndpointControl } from '../enforcement/endpoint-control.ts'
import type { FlowRing } from '../flows/record/flow-ring.ts'
import type { PolicyControl } from '../enforcement/policy-control.ts'
import type { EndpointRecord as FileRecord } from '../endpoints/file.ts'
import type { ResourceRecord } from '../endpoints/resources.ts'
import type { ApiResources, ResourceNews } from './api-resources.ts'
import { auditedRecords } from './audited-records.ts'
import { ConfigFiles, type ConfigFilesOptions } from './files/config-files.ts'
import { readGiven, type SourceEdit } from './given.ts'
import { GoneFiles } from './files/gone-files.ts'
import { tellLostPolicies } from './lost-policies.ts'
import { readingOf, type PolicyFile } from './files/policy-files.ts'
import { PolicyPorts } from './policy-ports.ts'
import type { SourceAges, SourceAgesOptions } from './source-ages.ts'
import { PAST_BOUND, SourceBounds } from './source-bounds.ts'
import { SourceWatch } from './files/source-watch.ts'

export interface ConfigSourcesOptions extends Omit<
  ConfigFilesOptions,
  'addressesMax' | 'onResource'
> {
  readonly policies: PolicyControl
  readonly endpoints: EndpointControl
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
  readonly #files: ConfigFiles
  readonly #to: ConfigSourcesOptions
  readonly #watch: SourceWatch
  readonly #ports = new PolicyPorts()
  readonly #bounds: SourceBounds
  readonly #gone: GoneFiles
  #refusal: readonly Fault[] = []
  #records: ReadonlyMap<string, FileRecord> = new Map()
  #started = false
  /** Whether endpoints were put in force once. */
  #isApplied = false
  /** Addresses that resources of the API may have beside all that is configured. */
  #addressRoom = 0

  constructor(options: ConfigSourcesOptions) {
    this.#to = options
    this.#bounds = new SourceBounds(options.config, options.policies.identityLabels)
    this.#files = new ConfigFiles({
      ...options,
      addressesMax: () => this.#addressRoom,
      onResource: (news) => this.#resourceChanged(news),
    })
    const { policies, endpoints, resources } = this.#files
    this.#gone = new GoneFiles({
      log: options.log,
      files: () => this.#files.gone,
      endpoints: () => endpoints.items,
    })
    const files = { policies, endpoints, resources: resources.files }
    this.#watch = new SourceWatch({ ...options, files, onChanged: () => this.#applyChange() })
  }

  get ages(): SourceAges {
    return this.#watch.ages
  }

  get apiResources(): ApiResources {
    return this.#files.resources.api
  }

  /** Policy files as they are shown: those that a refusal keeps out say why. */
  get policyFiles(): readonly PolicyFile[] {
    return this.#files.policies.files.map(({ path, items, state, faults }) => {
      const isRefused = state !== 'in-force' && faults.length === 0
      return { path, policies: items, state, faults: isRefused ? this.#refusal : faults }
    })
  }

  /** Texts of files in force that outlive the process. */
  get fileTexts(): ConfigFiles['texts'] {
    return this.#files.texts
  }

  /** States of files of endpoints and resources. */
  get recordFiles(): ConfigFiles['recordStates'] {
    return this.#files.recordStates
  }

  /** Of folders, of endpoints and resources, and of everything together. */
  get recordFaults(): readonly Fault[] {
    return [...this.#files.recordFaults, ...this.#refusal]
  }

  /** Configured files that are not there, and resources of the API that are left out. */
  get warnings(): readonly string[] {
    return this.#files.warnings
  }

  /** Whether what the files ask for passes a bound, so that what was in force before still is. */
  get isRefused(): boolean {
    return this.#refusal.length > 0
  }

  /** Reads everything; throws InvalidInputError with all faults of all files. */
  load(): void {
    const found = this.#files.load()
    const faults = found.length > 0 ? found : this.#boundFaults()
    if (faults.length > 0) throw new InvalidInputError(faults)
    this.#tellFaults('file refused, what was in force before the start stays')
    this.#gone.tell()
    this.#watch.tellHeard()
    this.#measureRoom()
    this.apiResources.restore()
  }

  /** Puts what was read in force; whether that is another configuration than before. */
  apply(): boolean {
    const { endpoints, onApplied } = this.#to
    const changed = this.#files.accept()
    this.#files.resources.apply()
    this.#measureRoom()
    this.#setPolicies()
    if (!this.#isApplied || changed.endpoints || !endpoints.isComplete) this.#applyEndpoints()
    this.#isApplied = true
    onApplied()
    return changed.policies || changed.endpoints || changed.resources
  }

  /**
   * Takes what the program gives or takes back, besides the files; before the start it comes into force with
   * them. Throws InvalidInputError with everything that is wrong, and then nothing has changed.
   */
  edit(edit: SourceEdit): void {
    const { policies, endpoints, faults } = readGiven(edit, readingOf(this.#to.config.policies))
    if (faults.length > 0) throw new InvalidInputError(faults)
    const given = [this.#files.policies.give(policies), this.#files.endpoints.give(endpoints)]
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

  #applyChange(): void {
    this.#refusal = []
    this.#tellFaults('file refused, what was in force before stays')
    this.#refusal = this.#boundFaults()
    for (const fault of this.#refusal) this.#to.log.warn({ fault: formatFault(fault) }, PAST_BOUND)
    if (!this.isRefused) this.#applyTold()
  }

  #tellFaults(message: string): void {
    for (const fault of [...this.#files.policies.faults, ...this.recordFaults]) {
      this.#to.log.warn({ fault: formatFault(fault) }, message)
    }
  }

  /** Puts in force what is proposed, and says what that took from endpoints. */
  #applyTold(): void {
    const { log, policies } = this.#to
    this.#gone.tell()
    if (!tellLostPolicies(this.#to, () => this.apply())) return
    log.info({ revision: policies.revision }, 'configuration changed')
  }

  #boundFaults(): readonly Fault[] {
    return this.#bounds.faults(this.#proposed(this.#files.resources.proposed))
  }

  #measureRoom(): void {
    this.#addressRoom = this.#bounds.addressRoom(
      this.#proposed(this.#files.resources.files.proposed),
    )
  }

  /** What all files ask for, with these resources. */
  #proposed(resources: readonly ResourceRecord[]): Parameters<SourceBounds['faults']>[0] {
    const named = [this.#files.endpoints.proposed, this.#files.resources.proposed]
    const policies = this.#ports.resolve(this.#files.policies.proposed, named)
    const isNew = (file: string): boolean => this.#files.isNew(file)
    return { policies, endpoints: this.#files.endpoints.proposed, resources, isNew }
  }

  #applyEndpoints(): void {
    this.#records = new Map(this.#files.endpoints.items.map((record) => [record.name, record]))
    this.#to.endpoints.apply(auditedRecords(this.#files.endpoints.items, this.#to.audit))
  }

  #setPolicies(): void {
    const { policies, endpoints } = this.#to
    const named = [this.#files.endpoints.items, this.#files.resources.items]
    policies.setPolicies(this.#ports.resolve(this.#files.policies.items, named), endpoints.registry)
  }

  /** A resource of the API came, changed or went. */
  #resourceChanged({ ports, freed }: ResourceNews): void {
    if (ports) this.#setPolicies()
    if (freed && this.#files.resources.files.hasHeld) {
      this.#files.resources.files.proposeAgain()
      this.#applyChange()
    }
    this.#to.onResources()
  }
}
