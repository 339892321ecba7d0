// Policies and endpoints from files, put in force: at the start all or nothing, later whenever a change has
// settled. A file with a fault keeps its last good version, a configuration past a bound is refused whole,
// and an endpoint that loses its last policy is told as a flow.

import type { Clock } from '../core/clock.ts'
import { formatFault, InvalidInputError, type Fault } from '../core/errors.ts'
import { boundFaults, configuredPrefixesMax } from '../control/config-bounds.ts'
import type { Auditable, AuditControl } from '../control/audit-control.ts'
import type { EndpointControl, EndpointRecord } from '../control/endpoint-control.ts'
import type { FlowRing } from '../control/flow-ring.ts'
import type { PolicyControl } from '../control/policy-control.ts'
import { qualifiedName } from '../control/rule-origins.ts'
import type { ResourceControl } from '../control/resource-control.ts'
import type { Config } from '../config/config.ts'
import {
  overlapFaults,
  parseEndpoints,
  type EndpointRecord as FileRecord,
} from '../endpoints/file.ts'
import { parseResources, repeatedNames, type ResourceRecord } from '../endpoints/resources.ts'
import type { Log } from '../telemetry/log.ts'
import { PolicyFiles } from './policy-files.ts'
import { RecordFiles } from './record-files.ts'

export interface ConfigSourcesOptions {
  readonly config: Config
  readonly clock: Clock
  readonly log: Log
  readonly policies: PolicyControl
  readonly endpoints: EndpointControl
  readonly resources: ResourceControl
  readonly audit: AuditControl
  readonly flows: FlowRing
  /** Something was put in force: labels are to be moved. */
  readonly onApplied: () => void
}

/** Files are looked at this often. */
const POLL_MS = 100

export class ConfigSources {
  readonly policyFiles: PolicyFiles
  readonly endpointFiles: RecordFiles<FileRecord>
  readonly resourceFiles: RecordFiles<ResourceRecord>
  readonly #to: ConfigSourcesOptions
  #refusal: readonly Fault[] = []
  #stopPolling = (): void => undefined

  constructor(options: ConfigSourcesOptions) {
    const { config, clock } = options
    this.#to = options
    this.policyFiles = new PolicyFiles({ paths: config.policies.paths, clock })
    this.endpointFiles = new RecordFiles({
      paths: config.endpoints.files,
      clock,
      parse: (text, file) => {
        const { endpoints: records, faults } = parseEndpoints(text, file)
        return { records, faults }
      },
      together: overlapFaults,
    })
    this.resourceFiles = new RecordFiles({
      paths: config.resources.files,
      clock,
      parse: (text, file) => {
        const { resources: records, faults } = parseResources(text, file)
        return { records, faults }
      },
      together: repeatedNames,
    })
  }

  /** What is wrong with the files as they are now; what was in force before them still is. */
  get faults(): readonly Fault[] {
    const ofPolicies = [...this.policyFiles.files].flatMap((file) => file.faults)
    return [...ofPolicies, ...this.recordFaults, ...this.#refusal]
  }

  /** Of endpoints and resources. */
  get recordFaults(): readonly Fault[] {
    return [...this.endpointFiles.faults, ...this.resourceFiles.faults]
  }

  /** Reads everything; throws InvalidInputError with all faults. */
  load(): void {
    this.policyFiles.loadAll()
    this.endpointFiles.loadAll()
    this.resourceFiles.loadAll()
    const faults = this.#boundFaults()
    if (faults.length > 0) throw new InvalidInputError(faults)
  }

  /** Puts what was read in force. */
  apply(): void {
    const { policies, endpoints, resources, onApplied } = this.#to
    resources.apply(this.resourceFiles.records)
    policies.setPolicies(this.policyFiles.policies, endpoints.registry)
    endpoints.apply(this.#records())
    onApplied()
  }

  start(): void {
    if (!this.#to.config.policies.watch) return
    const timer = this.#to.clock.every(POLL_MS, () => {
      const changes = [
        this.policyFiles.poll().length > 0,
        this.endpointFiles.poll(),
        this.resourceFiles.poll(),
      ]
      if (changes.includes(true)) this.#applyChange()
    })
    this.#stopPolling = () => timer.cancel()
  }

  stop(): void {
    this.#stopPolling()
  }

  /** The record of an endpoint as its file has it. */
  recordOf(name: string): Auditable | undefined {
    return this.endpointFiles.records.find((record) => record.name === name)
  }

  /** Reads everything again now, whether it looks changed or not (SIGHUP). */
  reload(): void {
    this.policyFiles.reload()
    this.endpointFiles.reload()
    this.resourceFiles.reload()
    this.#applyChange()
  }

  #applyChange(): void {
    const { log, policies } = this.#to
    this.#refusal = this.#boundFaults()
    for (const fault of this.faults) {
      log.warn({ fault: formatFault(fault) }, 'file refused, what was in force before stays')
    }
    if (this.#refusal.length > 0) return
    const before = this.#selected()
    this.apply()
    this.#reportLost(before)
    log.info({ revision: policies.revision }, 'configuration changed')
  }

  #boundFaults(): readonly Fault[] {
    const { limits, defaultEgress, dns } = this.#to.config
    const bounds = {
      selectors: limits.selectors,
      endpoints: limits.endpoints,
      resources: limits.resources,
      policyEntries: limits['policy-entries'],
      prefixes: configuredPrefixesMax(limits),
    }
    const compile = { defaultEgress, withoutDnsRules: dns.withoutRules }
    return boundFaults(
      {
        policies: this.policyFiles.policies,
        endpoints: this.endpointFiles.records,
        resources: this.resourceFiles.records,
      },
      bounds,
      compile,
    )
  }

  /** Endpoints as the files have them, but for what else decides on auditing. */
  #records(): readonly EndpointRecord[] {
    return this.endpointFiles.records.map(({ name, addresses, labels, hook, audit }) => {
      const { on } = this.#to.audit.decide({ name, labels, audit })
      return { name, addresses, labels, hook, audit: on }
    })
  }

  /** Endpoints that policies select, with those policies' names. */
  #selected(): ReadonlyMap<number, string> {
    const { endpoints, policies } = this.#to
    const selected = new Map<number, string>()
    for (const { id } of endpoints.registry) {
      const names = (policies.compiledOf(id)?.policies ?? []).map(qualifiedName)
      if (names.length > 0) selected.set(id, names.join(', '))
    }
    return selected
  }

  #reportLost(before: ReadonlyMap<number, string>): void {
    const { endpoints, flows, clock, log } = this.#to
    const after = this.#selected()
    for (const [id, names] of before) {
      const endpoint = endpoints.registry.byNumber(id)
      if (after.has(id) || endpoint === undefined) continue
      flows.addPolicyLost(clock.wall(), id, names)
      log.warn({ endpoint: endpoint.name, policies: names }, 'endpoint lost its last policy')
    }
  }
}
