// Puts policies, endpoints and resources in force, from files and from the program: at the start all or nothing, later each change
// once it has settled, and what the program sets at once. A file with a fault keeps its last good version. A configuration past a
// bound is refused as a whole. An endpoint that loses its last policy is reported as a flow.

import { formatFault, InvalidInputError, type Fault } from '../core/errors.ts'
import type { Auditable, AuditControl } from '../enforcement/audit-control.ts'
import type { EndpointControl, EndpointRecord } from '../enforcement/endpoint-control.ts'
import type { FlowRing } from '../flows/record/flow-ring.ts'
import type { PolicyControl } from '../enforcement/policy-control.ts'
import type { EndpointRecord as FileRecord } from '../endpoints/file.ts'
import type { ResourceRecord } from '../endpoints/resources.ts'
import type { ApiResources, ResourceChange } from './api-resources.ts'
import { ConfigFiles, type ConfigFilesOptions } from './files/config-files.ts'
import { FileWatcher } from './files/file-watcher.ts'
import { readingOf, type PolicyFile } from './files/policy-files.ts'
import { reportLostPolicies } from './lost-policies.ts'
import { PolicyPorts } from './policy-ports.ts'
import type { SourceAges, SourceAgesOptions } from './source-ages.ts'
import { PAST_BOUND, SourceBounds } from './source-bounds.ts'
import { readEdit, type SourceEdit } from './source-edit.ts'

export interface ConfigSourcesOptions extends Omit<
  ConfigFilesOptions,
  'addressesMax' | 'onResource'
> {
  readonly policies: PolicyControl
  readonly endpoints: EndpointControl
  readonly audit: AuditControl
  readonly flows: FlowRing
  /** Sources were unreachable for longer than `sources.max-age`, or are reachable again. */
  readonly onSilence: SourceAgesOptions['onChange']
  /** Something was put in force, so that labels have to move. */
  readonly onApplied: () => void
  /** The same, when only external resources changed. */
  readonly onResources: () => void
}

export class ConfigSources {
  readonly #files: ConfigFiles
  readonly #options: ConfigSourcesOptions
  readonly #watcher: FileWatcher
  readonly #ports = new PolicyPorts()
  readonly #bounds: SourceBounds
  #refusal: readonly Fault[] = []
  #records: ReadonlyMap<string, FileRecord> = new Map()
  #started = false
  /** Whether endpoints were put in force before. */
  #isApplied = false
  /** Addresses that resources of the API may add to all that is configured. */
  #addressRoom = 0

  constructor(options: ConfigSourcesOptions) {
    this.#options = options
    this.#bounds = new SourceBounds(options.config, options.policies.identityLabels)
    this.#files = new ConfigFiles({
      ...options,
      addressesMax: () => this.#addressRoom,
      onResource: (change) => this.#resourceChanged(change),
    })
    const { policies, endpoints, resources } = this.#files
    const files = { policies, endpoints, resources: resources.files }
    this.#watcher = new FileWatcher({ ...options, files, onChanged: () => this.#applyChange() })
  }

  get ages(): SourceAges {
    return this.#watcher.ages
  }

  get apiResources(): ApiResources {
    return this.#files.resources.api
  }

  /** Policy files as views show them: a file that a refusal keeps out has the faults of the refusal. */
  get policyFiles(): readonly PolicyFile[] {
    return this.#files.policies.files.map(({ path, items, state, faults }) => {
      const isRefused = state !== 'in-force' && faults.length === 0
      return { path, policies: items, state, faults: isRefused ? this.#refusal : faults }
    })
  }

  /** Texts of the files in force, kept over restarts. */
  get fileTexts(): ConfigFiles['texts'] {
    return this.#files.texts
  }

  /** States of the files of endpoints and resources. */
  get recordFiles(): ConfigFiles['recordStates'] {
    return this.#files.recordStates
  }

  /** Faults of folders, of endpoints and resources, and of everything together. */
  get recordFaults(): readonly Fault[] {
    return [...this.#files.recordFaults, ...this.#refusal]
  }

  /** Missing configured files, and resources of the API that are left out. */
  get warnings(): readonly string[] {
    return this.#files.warnings
  }

  /** Whether the files ask for more than a bound allows, so that the previous configuration stays in force. */
  get isRefused(): boolean {
    return this.#refusal.length > 0
  }

  /** Reads every file; throws InvalidInputError with all faults of all files. */
  load(): void {
    const found = this.#files.load()
    const faults = found.length > 0 ? found : this.#boundFaults()
    if (faults.length > 0) throw new InvalidInputError(faults)
    this.#reportFaults('file refused, what was in force before the start stays')
    this.#files.reportMissing()
    this.#watcher.noteAges()
    this.#measureRoom()
    this.apiResources.restore()
  }

  /** Puts what was read in force; returns whether the configuration differs from before. */
  apply(): boolean {
    const { endpoints, onApplied } = this.#options
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
   * Sets or removes what the program adds to the files; before the start it comes into force with them. Throws
   * InvalidInputError with all faults, and then nothing has changed.
   */
  edit(edit: SourceEdit): void {
    const { policies, endpoints, faults } = readEdit(edit, readingOf(this.#options.config.policies))
    if (faults.length > 0) throw new InvalidInputError(faults)
    const proposals = [
      this.#files.policies.propose(policies),
      this.#files.endpoints.propose(endpoints),
    ]
    const found = proposals.flatMap((each) => each.faults)
    const refused = found.length > 0 ? found : this.#boundFaults()
    if (refused.length > 0) {
      for (const { undo } of proposals.reverse()) undo()
      throw new InvalidInputError(refused)
    }
    if (!this.#started) return
    this.#refusal = []
    this.#applyAndReport()
  }

  start(): void {
    this.#started = true
    this.#watcher.start()
  }

  stop(): void {
    this.#started = false
    this.#watcher.stop()
    this.apiResources.stop()
  }

  /** The record of an endpoint as its file has it. */
  recordOf(name: string): Auditable | undefined {
    return this.#records.get(name)
  }

  /** Reads every file again, changed or not, once it has settled (SIGHUP). */
  reload(): void {
    if (this.#started) this.#watcher.reload()
  }

  #applyChange(): void {
    this.#refusal = []
    this.#reportFaults('file refused, what was in force before stays')
    this.#refusal = this.#boundFaults()
    for (const fault of this.#refusal)
      this.#options.log.warn({ fault: formatFault(fault) }, PAST_BOUND)
    if (!this.isRefused) this.#applyAndReport()
  }

  #reportFaults(message: string): void {
    for (const fault of [...this.#files.policies.faults, ...this.recordFaults]) {
      this.#options.log.warn({ fault: formatFault(fault) }, message)
    }
  }

  /** Puts in force what is proposed, and reports endpoints that lost their last policy by it. */
  #applyAndReport(): void {
    const { log, policies } = this.#options
    this.#files.reportMissing()
    if (!reportLostPolicies(this.#options, () => this.apply())) return
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

  /** What all files propose, with these resources. */
  #proposed(resources: readonly ResourceRecord[]): Parameters<SourceBounds['faults']>[0] {
    const named = [this.#files.endpoints.proposed, this.#files.resources.proposed]
    const policies = this.#ports.resolve(this.#files.policies.proposed, named)
    const isNew = (file: string): boolean => this.#files.isNew(file)
    return { policies, endpoints: this.#files.endpoints.proposed, resources, isNew }
  }

  #applyEndpoints(): void {
    this.#records = new Map(this.#files.endpoints.items.map((record) => [record.name, record]))
    this.#options.endpoints.apply(
      this.#files.endpoints.items.map((record) => toEndpoint(record, this.#options.audit)),
    )
  }

  #setPolicies(): void {
    const { policies, endpoints } = this.#options
    const named = [this.#files.endpoints.items, this.#files.resources.items]
    policies.setPolicies(this.#ports.resolve(this.#files.policies.items, named), endpoints.registry)
  }

  /** A resource of the API was added, changed or removed. */
  #resourceChanged({ ports, freed }: ResourceChange): void {
    if (ports) this.#setPolicies()
    if (freed && this.#files.resources.files.hasHeld) {
      this.#files.resources.files.proposeAgain()
      this.#applyChange()
    }
    this.#options.onResources()
  }
}

/** The endpoint of a file's record; `control` decides whether it is audited. */
function toEndpoint(record: FileRecord, control: AuditControl): EndpointRecord {
  const { name, addresses, labels, hook, audit } = record
  const { on } = control.decide({ name, labels, audit })
  return { name, addresses, labels, hook, audit: on }
}
