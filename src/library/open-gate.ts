// Implements a gate with the daemon's own parts (DaemonServices), with values of a program instead of files. A gate installs no signal
// handlers, never ends the process and prints nothing. It takes free ports, and it writes to disk only as the configuration says.

import { endpointRows } from '../admin/views/endpoints.ts'
import { FLOW_FILTERS } from '../admin/views/flows.ts'
import { collect } from '../admin/views/rows.ts'
import { statusView } from '../admin/views/status.ts'
import { configFromObject } from '../config/load.ts'
import { FLOW_CAPACITY } from '../flows/record/flow-ring.ts'
import type { ResourceOutcome } from '../enforcement/resource-control.ts'
import { systemClock } from '../core/clock.ts'
import { InvalidInputError, UnavailableError } from '../core/errors.ts'
import { isMapping } from '../documents/source-document.ts'
import { refuseStale } from '../daemon/stale-datapaths.ts'
import { DaemonServices } from '../daemon/services.ts'
import { loadCluster } from '../daemon/open-cluster.ts'
import { openLog } from '../telemetry/log.ts'
import { SILENT } from '../telemetry/silent.ts'
import { FlowReader } from './flow-reader.ts'
import type {
  EndpointSpec,
  FlowOptions,
  Flows,
  Gate,
  GateChange,
  GateEndpoint,
  GateOptions,
  GateStatus,
  PolicySource,
  Realized,
  ResourceSpec,
} from './gate.ts'
import { checkFlowOptions, checkOptions, toEdit } from './options.ts'

/** The time between two checks of a change that is not in force yet, in milliseconds. */
const LOOK_MS = 1

/** Starts a gate. After a rejection nothing is left running. */
export async function openGate(options: GateOptions): Promise<Gate> {
  checkOptions(options)
  const given: unknown = options.config ?? {}
  const config = configFromObject(withDefaults(given))
  refuseStale(config, false, 'FILE (with the same datapath in it)')
  const { policies = {}, endpoints = [] } = options
  const edit = toEdit({ policies, endpoints })
  const write = options.log
  const log =
    write === undefined ? SILENT : await openLog({ ...config.log, clock: systemClock, write })
  const outside = {
    state: has(given, 'state'),
    admin: has(given, 'admin'),
    metrics: has(given, 'metrics'),
  }
  const openCluster = await loadCluster(config, log)
  const services = new DaemonServices({ config, log, outside, openCluster })
  try {
    services.daemon.sources.edit(edit)
    await services.start()
    return new OpenGate(services)
  } catch (error) {
    await services.stop()
    throw error
  }
}

function has(config: unknown, key: string): boolean {
  return isMapping(config) && config[key] !== undefined
}

/** Adds the defaults of a program: no files, and a listener on a free port. */
function withDefaults(config: unknown): unknown {
  if (!isMapping(config)) return config
  const { listeners, policies, endpoints, ...rest } = config
  return {
    ...rest,
    listeners: listeners === undefined ? [{ address: '127.0.0.1', port: 0 }] : listeners,
    policies: withNone(policies, 'paths'),
    endpoints: withNone(endpoints, 'files'),
  }
}

function withNone(section: unknown, key: string): unknown {
  if (section !== undefined && !isMapping(section)) return section
  return { ...section, [key]: section?.[key] === undefined ? [] : section[key] }
}

/** Why a resource could not be changed. Removing an unknown resource is a success. */
function refusalsOf(outcome: ResourceOutcome): readonly string[] {
  switch (outcome.kind) {
    case 'ok':
    case 'unknown':
      return []
    case 'conflict':
      return [outcome.reason]
    case 'invalid':
      return outcome.reasons
  }
}

class OpenGate implements Gate {
  readonly addresses: readonly string[]
  readonly metricsPort: number | undefined
  readonly #services: DaemonServices
  readonly #readers = new Set<FlowReader>()
  #stopping: Promise<void> | undefined

  constructor(services: DaemonServices) {
    this.#services = services
    this.addresses = services.daemon.proxy.listeners.texts
    this.metricsPort = services.metricsPort
  }

  async change(change: GateChange): Promise<Realized> {
    this.#mustRun()
    this.#services.daemon.sources.edit(toEdit(change))
    return await this.#realized()
  }

  async setPolicy(name: string, policy: PolicySource): Promise<Realized> {
    return await this.change({ policies: { [name]: policy } })
  }

  async removePolicy(name: string): Promise<Realized> {
    return await this.change({ removePolicies: [name] })
  }

  async setEndpoint(endpoint: EndpointSpec): Promise<Realized> {
    return await this.change({ endpoints: [endpoint] })
  }

  async removeEndpoint(name: string): Promise<Realized> {
    return await this.change({ removeEndpoints: [name] })
  }

  async setResource(name: string, resource: ResourceSpec): Promise<Realized> {
    this.#mustRun()
    return await this.#resourceChanged(
      this.#services.daemon.sources.apiResources.set(name, resource),
    )
  }

  async removeResource(name: string): Promise<Realized> {
    this.#mustRun()
    return await this.#resourceChanged(this.#services.daemon.sources.apiResources.remove(name))
  }

  async #resourceChanged(outcome: ResourceOutcome): Promise<Realized> {
    const reasons = refusalsOf(outcome)
    if (reasons.length > 0) {
      const position = { file: 'resource', line: 0, column: 0 }
      throw new InvalidInputError(reasons.map((message) => ({ position, message })))
    }
    const [realized] = await Promise.all([
      this.#realized(),
      outcome.kind === 'ok' ? outcome.kept : undefined,
    ])
    return realized
  }

  flows(options: FlowOptions = {}): Flows {
    checkFlowOptions(options, FLOW_FILTERS, FLOW_CAPACITY)
    const reader = new FlowReader(this.#services.state, options, () => this.#readers.delete(reader))
    this.#readers.add(reader)
    if (this.#stopping !== undefined) reader.end()
    return reader
  }

  status(): GateStatus {
    return statusView(this.#services.state)
  }

  endpoints(): readonly GateEndpoint[] {
    return collect(endpointRows(this.#services.state))
  }

  async stop(): Promise<void> {
    this.#stopping ??= this.#stop()
    await this.#stopping
  }

  async #stop(): Promise<void> {
    await this.#services.stop()
    for (const reader of [...this.#readers]) reader.end()
  }

  /** Waits until all changes are in force. */
  async #realized(): Promise<Realized> {
    const { transition, core } = this.#services.daemon
    while (transition.pending) {
      await new Promise<void>((done) => core.clock.after(LOOK_MS, done))
      this.#mustRun()
    }
    const { revision, refused } = core.committer
    return { revision, refused }
  }

  #mustRun(): void {
    if (this.#stopping !== undefined)
      throw new UnavailableError('Cannot change: the gate is stopped')
  }
}
