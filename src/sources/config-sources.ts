// Puts policies, endpoints and resources in force, from files and from the program. At the start all of them are put in force, or none.
// Later a changed file is put in force after its quiet time, and a change by the program at once. A file with a fault keeps its last good
// version. A configuration that exceeds a bound is refused as a whole. An endpoint that loses its last policy is reported as a flow.

import { formatFault, InvalidInputError, type Fault } from '../core/errors.ts'
import type { Auditable, AuditControl } from '../enforcement/audit-control.ts'
import type { EndpointControl, EndpointRecord } from '../enforcement/endpoint-control.ts'
import type { FlowRing } from '../flows/record/flow-ring.ts'
import type { PolicyControl } from '../enforcement/policy-control.ts'
import type { Resource, ResourceControl } from '../enforcement/resource-control.ts'
import type { EndpointRecord as FileRecord } from '../endpoints/file.ts'
import type { ResourceRecord } from '../endpoints/resources.ts'
import type { ApiResources, ResourceChange } from './api-resources.ts'
import { ConfigFiles, type ConfigFilesOptions } from './files/config-files.ts'
import { FileWatcher } from './files/file-watcher.ts'
import { readingOf, type PolicyFile } from './files/policy-files.ts'
import type { ReceivedObjects } from './files/given-items.ts'
import { reportLostPolicies } from './lost-policies.ts'
import { PolicyPorts } from './policy-ports.ts'
import type { OnSilence, SourceAges } from './source-ages.ts'
import { PAST_BOUND, SourceBounds } from './source-bounds.ts'
import { readEdit, type SourceEdit } from './source-edit.ts'

export interface ConfigSourcesOptions extends Omit<
  ConfigFilesOptions,
  'addressesMax' | 'onResource'
> {
  readonly policies: PolicyControl
  readonly endpoints: EndpointControl
  /** The pods of other nodes. */
  readonly peers: ResourceControl
  readonly audit: AuditControl
  readonly flows: FlowRing
  /** True while the cluster shows every collection. Returns undefined without a cluster. */
  readonly isClusterReachable?: () => boolean | undefined
  /** Called when sources become silent (`sources.max-age`), and when all are reachable again. */
  readonly onSilence: OnSilence
  /** Called when a change is in force, so that labels can follow. */
  readonly onApplied: () => void
  /** Called when a change of external resources only is in force. */
  readonly onResources: () => void
}

export class ConfigSources {
  readonly #files: ConfigFiles
  readonly #options: ConfigSourcesOptions
  readonly #watcher: FileWatcher
  readonly #ports = new PolicyPorts()
  readonly #bounds: SourceBounds
  #refusal: readonly Fault[] = []
  /** The faults of the last change, which are logged. */
  #reported: ReadonlySet<string> = new Set()
  /** The files that were reported for their faults and are not in force again. */
  #faulty: ReadonlySet<string> = new Set()
  #records: ReadonlyMap<string, FileRecord> = new Map()
  #started = false
  /** True after endpoints were put in force once. */
  #isApplied = false
  /** How many addresses the resources of the API can add to all configured addresses. */
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

  /** Policy files as views show them. If a bound keeps a file out of force, the file has the faults of that refusal. */
  get policyFiles(): readonly PolicyFile[] {
    return this.#files.policies.files.map(({ path, items, state, faults }) => {
      const isRefused = state !== 'in-force' && faults.length === 0
      return { path, policies: items, state, faults: isRefused ? this.#refusal : faults }
    })
  }

  /** The texts of the files in force, which are kept over restarts. */
  get fileTexts(): ConfigFiles['texts'] {
    return this.#files.texts
  }

  /** The endpoints of files that were read. They may not be in force yet. */
  get proposed(): readonly Pick<FileRecord, 'hook'>[] {
    return this.#files.endpoints.proposed
  }

  /** States of the files of endpoints and resources. */
  get recordFiles(): ConfigFiles['recordStates'] {
    return this.#files.recordStates
  }

  /** Faults of folders, of endpoints and resources, and of the whole configuration. */
  get recordFaults(): readonly Fault[] {
    return [...this.#files.recordFaults, ...this.#refusal]
  }

  /** Warnings about resources of the API that were left out. */
  get warnings(): readonly string[] {
    return this.apiResources.leftOut
  }

  /** True if the files exceed a bound, so that the previous configuration stays in force. */
  get isRefused(): boolean {
    return this.#refusal.length > 0
  }

  /** Reads every file. Throws InvalidInputError with all faults of all files. */
  load(): void {
    const found = this.#files.load()
    const faults = found.length > 0 ? found : this.#boundFaults()
    if (faults.length > 0) throw new InvalidInputError(faults)
    this.#reportFaults('file refused, what was in force before the start stays')
    this.#watcher.noteAges()
    this.#measureRoom()
    this.apiResources.restore()
  }

  /** Puts the files that were read in force. Returns true if the configuration has changed. */
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
   * Sets or removes what the program adds to the files. Before the start, the edit is put in force together with the files. Throws
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

  /**
   * Puts versions of a cluster's objects in force. An object with faults keeps its last version, and an object that contradicts a file is
   * held. Before the start, the objects are put in force together with the files.
   */
  receive({ policies, endpoints, peers }: ReceivedObjects): void {
    for (const [name, peer] of peers) this.#setPeer(name, peer)
    if (peers.size > 0 && this.#started) this.#options.onResources()
    const changed = [
      this.#files.policies.receive(policies),
      this.#files.endpoints.receive(endpoints),
    ].includes(true)
    if (changed && this.#started) this.#applyChange()
  }

  #setPeer(name: string, peer: Resource | undefined): void {
    const { peers, policies } = this.#options
    if (peer === undefined) peers.remove(name)
    else peers.set({ ...peer, labels: policies.identityLabels.of(peer.labels) })
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

  /** The record of an endpoint from its file, without audit settings that were made at run time. */
  recordOf(name: string): Auditable | undefined {
    return this.#records.get(name)
  }

  /** Makes the daemon read every file again, also unchanged files (SIGHUP). */
  reload(): void {
    if (this.#started) this.#watcher.reload()
  }

  #applyChange(): void {
    this.#refusal = []
    this.#reportFaults('file refused, what was in force before stays')
    this.#refusal = this.#boundFaults()
    for (const fault of this.#refusal)
      this.#options.log.warn({ fault: formatFault(fault) }, PAST_BOUND)
    if (this.isRefused) return
    this.#applyAndReport()
    this.#reportRepaired()
  }

  /** Logs each fault when it is found. A fault that stays is not logged again. */
  #reportFaults(message: string): void {
    const faults = this.#faults
    const texts = faults.map(formatFault)
    for (const fault of texts) {
      if (!this.#reported.has(fault)) this.#options.log.warn({ fault }, message)
    }
    this.#reported = new Set(texts)
    this.#faulty = new Set([...this.#faulty, ...faults.map(({ position }) => position.file)])
  }

  /** Logs each file that had faults and has none now. A file that was removed is not logged here. */
  #reportRepaired(): void {
    const still = new Set(this.#faults.map(({ position }) => position.file))
    for (const path of this.#faulty) {
      if (still.has(path) || !this.#files.has(path)) continue
      this.#options.log.info({ path }, 'file has no fault any more: in force again')
    }
    this.#faulty = still
  }

  get #faults(): readonly Fault[] {
    return [...this.#files.policies.faults, ...this.recordFaults]
  }

  /** Puts the proposals in force, and reports endpoints that thereby lost their last policy. */
  #applyAndReport(): void {
    const { log, policies } = this.#options
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

  /** The proposed policies and endpoints of all files, with the given resources. */
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

  /** Called after a change of the resources of the API. */
  #resourceChanged({ ports, freed }: ResourceChange): void {
    if (ports) this.#setPolicies()
    if (freed && this.#files.resources.files.hasHeld) {
      this.#files.resources.files.proposeAgain()
      this.#applyChange()
    }
    this.#options.onResources()
  }
}

/** Makes an endpoint of a file's record. `control` decides if the endpoint is audited. */
function toEndpoint(record: FileRecord, control: AuditControl): EndpointRecord {
  const { name, addresses, labels, hook, audit, uid, position } = record
  const { on } = control.decide({ name, labels, audit })
  return { name, addresses, labels, hook, audit: on, uid, origin: position.file }
}
