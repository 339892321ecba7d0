// Builds all parts of the daemon and connects them. `start` follows an order that never allows a packet or answer too early: kernel
// state, listeners, policy and endpoints, and only then hooks. `stop` has the reverse order, and the kernel continues to enforce.

import { systemClock, type Clock } from '../core/clock.ts'
import type { Prefix } from '../core/ip.ts'
import type { AdoptionControl } from '../enforcement/adoption-control.ts'
import type { AuditControl } from '../enforcement/audit-control.ts'
import type { CoreState } from '../enforcement/core-state.ts'
import { EndpointControl } from '../enforcement/endpoint-control.ts'
import { FlowRing } from '../flows/record/flow-ring.ts'
import { EmptyDenies } from '../enforcement/empty-denies.ts'
import { OWNER_PEER } from '../ipcache/facts.ts'
import { Housekeeping } from '../reconcile/housekeeping.ts'
import { FlowBegins, packetFlowOf } from '../flows/record/packet-flow.ts'
import type { PolicyControl } from '../enforcement/policy-control.ts'
import { Persistence } from '../restore/persistence.ts'
import { ResourceControl } from '../enforcement/resource-control.ts'
import { Restart } from '../restore/restart.ts'
import { Transition } from '../enforcement/transition.ts'
import type { Config } from '../config/config.ts'
import { DaemonMode } from './mode.ts'
import {
  documentsOf,
  makeAdoption,
  makeAudit,
  makeCore,
  makePolicies,
  openRepair,
  ownTraffic,
  serversOf,
  type DaemonOptions,
  type Repairs,
} from './parts.ts'
import {
  ConditionReports,
  reportAdopted,
  reportEmptyDenies,
  reportExpiredUse,
  reportFallbacks,
  reportHooks,
} from './log-reports.ts'
import type { DatapathDump } from '../datapath/entries.ts'
import type { Datapath } from '../datapath/datapath.ts'
import { loadPosix } from '../native/native.ts'
import type { Kubernetes } from '../kubernetes/kubernetes.ts'
import type { Interception } from '../intercept/interception.ts'
import { refuseTaken } from './open-datapath.ts'
import { Fencing } from './fencing.ts'
import { areRulesFirst, openInterception, placesOf } from './open-interception.ts'
import { makeReadiness, reasonsNotReady } from './readiness.ts'
import { DnsProxy } from '../proxy/dns-proxy.ts'
import { systemRandom } from '../core/random.ts'
import type { Readiness } from '../proxy/upstream/probes.ts'
import type { ServerAddress } from '../proxy/upstream/server-pool.ts'
import type { ResourceKeeper } from '../sources/api-resources.ts'
import { ConfigSources } from '../sources/config-sources.ts'
import type { ReceivedObjects } from '../sources/files/given-items.ts'
import { NodeAddresses } from '../config/node-addresses.ts'
import type { Log } from '../telemetry/log.ts'

export class Daemon {
  readonly config: Config
  readonly clock: Clock
  readonly datapath: Datapath
  readonly flows = new FlowRing()
  readonly flowBegins = new FlowBegins()
  readonly servers: readonly ServerAddress[]
  readonly core: CoreState
  readonly policies: PolicyControl
  readonly adoption: AdoptionControl
  readonly endpoints: EndpointControl
  readonly resources: ResourceControl
  readonly transition: Transition
  readonly housekeeping: Housekeeping
  readonly emptyDenies = new EmptyDenies(this, (texts) => reportEmptyDenies(this.#log, texts))
  readonly restart: Restart
  /** Undefined for a datapath that no other process can change. */
  readonly repair: Repairs | undefined
  readonly audit: AuditControl
  readonly mode: DaemonMode
  readonly sources: ConfigSources
  /** Undefined without `kubernetes` in the configuration. */
  readonly cluster: Kubernetes | undefined
  readonly proxy: DnsProxy
  readonly interception: Interception
  readonly readiness: Readiness
  readonly #log: Log
  readonly #isOutside: boolean
  readonly #restored: DatapathDump
  readonly #persistence: Persistence
  #node: NodeAddresses | undefined
  readonly #conditions: ConditionReports
  readonly #fencing = new Fencing(this, () => this.#restored.endpoints.length > 0)
  #bound = false
  #stopped = false

  constructor(options: DaemonOptions) {
    const { config, datapath, log, clock = systemClock } = options
    this.config = config
    this.clock = clock
    this.datapath = datapath
    this.#log = log
    this.#isOutside = options.sockets !== undefined
    this.servers = options.servers ?? serversOf(config)
    // The kernel's entries are read last, because reading many of them takes time. DaemonServices begins this reading earlier.
    const node = options.nodeAddresses ?? (this.#node = new NodeAddresses()).known
    const persistence = (this.#persistence = new Persistence(options.kept, config.limits.pairs))
    const restored = (this.#restored = datapath.start())
    const core = makeCore({ config, clock, datapath, restored, persistence, nodeAddresses: node })
    this.core = core
    this.policies = makePolicies(config, core)
    this.adoption = makeAdoption(config, datapath, node)
    this.endpoints = new EndpointControl({
      core,
      policies: this.policies,
      restored,
      nodeAddresses: node,
      endpointsMax: config.limits.endpoints,
      onPresent: (endpoint) => this.adoption.adopt(endpoint),
      saved: persistence.endpoints,
      onDocument: persistence.onDocument,
      onGone: (endpoint) => this.flows.former.add(endpoint),
    })
    persistence.begin(core, () => documentsOf(this))
    this.restart = new Restart({
      core,
      restored,
      pending: persistence.pendingEntries(core, this.endpoints.registry),
      graceMs: config.state.restoreGraceMs,
      endpoints: () => this.endpoints.registry.ids(),
    })
    core.expiry.onExpiredUse = (entry) => reportExpiredUse(this, log, entry)
    this.resources = new ResourceControl({ core })
    this.transition = new Transition(this)
    this.housekeeping = this.#makeHousekeeping()
    this.repair = openRepair(this, log)
    this.audit = makeAudit(options)
    this.mode = new DaemonMode(this, log)
    this.sources = this.#makeSources(options.resourceKeeper)
    const onChange = (change: ReceivedObjects): boolean => {
      this.sources.receive(change)
      return this.transition.pending
    }
    this.cluster = options.openCluster?.({ clock, keeper: persistence.fileKeeper, onChange })
    this.proxy = this.#makeProxy(node, options)
    this.interception = openInterception({ config, clock, log, datapath, servers: this.servers })
    this.readiness = makeReadiness(config, clock, this.proxy)
    const { emptyDenies } = this
    const [{ committer }, { pool }] = [core, this.proxy.upstream]
    this.#conditions = new ConditionReports({ log, clock, committer, pool, emptyDenies })
  }

  #makeHousekeeping(): Housekeeping {
    return new Housekeeping({
      core: this.core,
      transition: this.transition,
      onEvent: (event, time) => this.flows.addPacket(time, packetFlowOf(this, event)),
      onHooks: (changed) => this.#onHooks(changed),
      onFallbacks: (count) => reportFallbacks(this.#log, count),
      onBeat: () => this.#onBeat(),
      onInForce: () => this.cluster?.times.inForce(),
      hasSilentHooks: () => this.endpoints.registry.sharedCount > 0,
    })
  }

  #makeSources(resourceKeeper: ResourceKeeper | undefined): ConfigSources {
    const { config, clock, core, policies, endpoints, resources, audit, flows } = this
    return new ConfigSources({
      config,
      clock,
      log: this.#log,
      policies,
      endpoints,
      resources,
      peers: new ResourceControl({ core, owner: OWNER_PEER }),
      resourceKeeper,
      fileKeeper: this.#persistence.fileKeeper,
      audit,
      flows,
      isClusterReachable: () => this.cluster?.isReachable,
      onApplied: () => {
        this.housekeeping.beginTransition()
        this.#endpointsChanged()
      },
      onResources: () => this.housekeeping.beginTransition(),
      onSilence: this.mode.onSilence,
    })
  }

  #makeProxy(node: readonly Prefix[], { sockets, passed }: DaemonOptions): DnsProxy {
    const { config, clock, core, policies, endpoints, flows, servers } = this
    return new DnsProxy({
      config,
      clock,
      random: systemRandom,
      core,
      policies,
      registry: endpoints.registry,
      flows,
      servers,
      hasIpv6: node.some(({ family }) => family === 6),
      interfaces: loadPosix(),
      isNodeAudited: () => this.mode.now !== 'enforce',
      isClosed: () => this.mode.isSilentFor('deny'),
      sockets,
      passed,
    })
  }

  /** Why the daemon is not ready. Empty when it is ready. */
  get notReady(): readonly string[] {
    const bound = this.#bound ? [] : ['listeners are not bound']
    return [...bound, ...reasonsNotReady(this), ...(this.cluster?.notReady ?? [])]
  }

  /** Starts everything, in an order that never allows a packet or an answer too early. `isQuiet`: the caller turns reading on. */
  async start(isQuiet = false): Promise<void> {
    this.cluster?.restore()
    this.sources.load()
    refuseTaken(this.config, this.datapath, this.sources.proposed)
    this.mode.start(this.#restored.mode)
    // If the proxy sends from another network namespace, no hook judges its packets.
    if (!this.#isOutside) this.datapath.exceptions.setOwn(ownTraffic(this.config, this.servers))
    this.proxy.start()
    this.#bound = true
    this.datapath.exceptions.setListeners(this.proxy.listeners.entries)
    const areFirst = areRulesFirst(this.config, this.#restored)
    const first = areFirst ? this.interception.start(placesOf(this.sources.proposed)) : undefined
    await first?.catch(() => undefined)
    this.sources.apply()
    if (!isQuiet) this.proxy.listeners.reading(true)
    // From here on, a new endpoint is enforced from its first packet.
    this.adoption.end()
    reportAdopted(this.#log, this.adoption, this.config.datapath)
    await this.transition.finished()
    reportHooks(this.#log, this, this.endpoints.registry.ids())
    this.#fencing.look()
    await (first ?? this.interception.start(placesOf(this.endpoints.registry)))
    this.housekeeping.start()
    this.restart.start()
    this.repair?.start()
    this.sources.start()
    this.cluster?.start()
    this.readiness.start()
  }

  /**
   * Stops everything in reverse order. Later calls do nothing. The kernel continues to enforce. `goesOn`: another daemon takes over.
   * Interception then stays as it is, and DaemonServices stops the proxy later.
   */
  stop(goesOn = false): void {
    if (this.#stopped) return
    this.#stopped = true
    this.readiness.stop()
    this.cluster?.stop()
    this.sources.stop()
    this.restart.stop()
    this.repair?.stop()
    this.housekeeping.stop()
    if (goesOn) {
      this.interception.release()
    } else {
      void this.interception.stop()
      this.proxy.stop()
    }
    this.#persistence.finish()
    this.datapath.stop({ leaveEnforcing: true })
    this.#node?.close()
  }

  #onBeat(): void {
    this.#conditions.look()
    this.#fencing.look()
    const changed = this.#node?.look()
    if (changed === undefined) return
    this.endpoints.setNodeAddresses(changed)
    this.housekeeping.beginTransition()
  }

  /**
   * Receives endpoints whose hooks appeared or disappeared. If the hook of an endpoint was made again, the endpoint becomes a new endpoint.
   */
  #onHooks(changed: readonly number[]): void {
    reportHooks(this.#log, this, changed)
    let begunAnew = false
    for (const id of changed) {
      const endpoint = this.endpoints.registry.byNumber(id)
      if (endpoint !== undefined) begunAnew = this.endpoints.followHook(endpoint) || begunAnew
    }
    if (begunAnew) this.housekeeping.beginTransition()
    this.#endpointsChanged()
  }

  /** Tells the proxy, interception and the counts of flows that endpoints or their hooks changed. */
  #endpointsChanged(): void {
    this.flows.verdicts.keep(this.endpoints.registry)
    this.proxy.endpointsChanged()
    this.interception.placesChanged(placesOf(this.endpoints.registry))
  }
}
