// The composition root: the one place where everything is put together, read from top to bottom. Starts in
// the order of the promise: kernel state, policy, endpoints, then listeners; stops in reverse and leaves
// the kernel enforcing.

import { systemClock, type Clock } from './core/clock.ts'
import { InvalidInputError, UnavailableError } from './core/errors.ts'
import { formatAddress } from './core/ip.ts'
import { CoreState } from './control/core-state.ts'
import { EndpointControl } from './control/endpoint-control.ts'
import { FlowRing } from './control/flow-ring.ts'
import { Housekeeping } from './control/housekeeping.ts'
import { PolicyControl } from './control/policy-control.ts'
import { removeLeftovers } from './control/takeover.ts'
import { Transition } from './control/transition.ts'
import type { Config } from './config/config.ts'
import { ownAddresses } from './config/load.ts'
import { resolveUpstreams } from './config/upstreams.ts'
import type { Datapath, DatapathEvent, Mode } from './datapath/datapath.ts'
import { ClientEndpoints } from './proxy/client-endpoints.ts'
import { Learner } from './proxy/learner.ts'
import { Listeners } from './proxy/listeners.ts'
import { Pipeline } from './proxy/pipeline.ts'
import { probeServer } from './proxy/probe.ts'
import { ProxyFlows } from './proxy/proxy-flows.ts'
import { RandomPool, systemRandom } from './proxy/random.ts'
import { Responder } from './proxy/responder.ts'
import type { ServerAddress } from './proxy/server-pool.ts'
import { Upstream } from './proxy/upstream.ts'
import { ConfigSources } from './sources/config-sources.ts'
import { nodeAddresses } from './sources/node-addresses.ts'
import { systemResolvers } from './sources/system-resolvers.ts'
import type { Log } from './telemetry/log.ts'

export interface DaemonOptions {
  readonly config: Config
  readonly log: Log
  readonly datapath: Datapath
  readonly clock?: Clock
}

const SECOND_MS = 1000

export class Daemon {
  readonly config: Config
  readonly clock: Clock
  readonly datapath: Datapath
  readonly core: CoreState
  readonly policies: PolicyControl
  readonly endpoints: EndpointControl
  readonly transition: Transition
  readonly housekeeping: Housekeeping
  readonly sources: ConfigSources
  readonly flows = new FlowRing()
  readonly servers: readonly ServerAddress[]
  readonly upstream: Upstream
  readonly listeners: Listeners
  readonly responder: Responder
  readonly learner: Learner
  readonly pipeline: Pipeline
  readonly #log: Log
  readonly #restored
  #mode: Mode = 'enforce'
  #upstreamAnswered = false
  #bound = false

  constructor(options: DaemonOptions) {
    const { config, datapath, log } = options
    const clock = options.clock ?? systemClock
    const { limits, dns } = config
    this.config = config
    this.clock = clock
    this.datapath = datapath
    this.#log = log
    this.servers = serversOf(config)
    this.#restored = datapath.start()
    const node = nodeAddresses()
    this.core = new CoreState({
      clock,
      datapath,
      restored: this.#restored,
      limits: {
        pairs: limits.pairs,
        addressesPerName: limits['addresses-per-name'],
        dynamicIdentities: limits['dynamic-identities'],
        policyEntries: limits['policy-entries'],
        configuredPrefixes: limits.selectors * 2,
      },
      graceSeconds: Math.ceil(dns.graceAfterTtlMs / SECOND_MS),
      nodeAddresses: node,
      protectedPrefixes: dns.protectedPrefixes,
    })
    const { core } = this
    this.policies = new PolicyControl({
      core,
      defaultEgress: config.defaultEgress,
      withoutDnsRules: dns.withoutRules,
      staticIdentitiesMax: limits['static-identities'],
    })
    this.endpoints = new EndpointControl({
      core,
      policies: this.policies,
      restored: this.#restored,
      nodeAddresses: node,
      endpointsMax: limits.endpoints,
    })
    this.transition = new Transition({ core, policies: this.policies })
    this.housekeeping = new Housekeeping({
      core,
      transition: this.transition,
      onEvent: (event) => this.#onEvent(event),
      onHooks: (changed) => this.#onHooks(changed),
    })
    this.sources = new ConfigSources({
      config,
      clock,
      log,
      policies: this.policies,
      endpoints: this.endpoints,
      flows: this.flows,
      onApplied: () => this.housekeeping.beginTransition(),
    })
    this.upstream = new Upstream({
      clock,
      random: systemRandom,
      servers: this.servers,
      onAnswers: (answers) => this.pipeline.settle(answers),
      onFailures: (failures) => this.pipeline.fail(failures),
      limits: {
        timeout: config.upstreams.timeoutMs,
        attempts: config.upstreams.attempts,
        inFlight: limits['queries-in-flight'],
        inFlightPerClient: limits['queries-in-flight-per-client'],
      },
    })
    this.listeners = new Listeners({
      clock,
      limits,
      configs: config.listeners,
      hasIpv6: node.some(({ family }) => family === 6),
      onBatch: (batch) => this.pipeline.admit(batch),
    })
    this.responder = new Responder({
      udp: this.listeners.udp,
      tcp: this.listeners.tcp,
      inFlight: this.upstream.inFlight,
      udpMessageMax: limits['udp-message'],
    })
    this.learner = new Learner({
      names: core.names,
      ipcache: core.ipcache,
      committer: core.committer,
      guard: core.guard,
      selectorLabels: core.selectorLabels,
      minTtl: Math.ceil(dns.minTtlMs / SECOND_MS),
      maxTtl: Math.floor(dns.maxTtlMs / SECOND_MS),
    })
    this.pipeline = this.#makePipeline()
  }

  #makePipeline(): Pipeline {
    const { core, upstream, clock, flows: ring, responder, learner, policies } = this
    const { dns } = this.config
    const { registry } = this.endpoints
    const clients = new ClientEndpoints({
      registry,
      datapath: this.datapath,
      ipcache: core.ipcache,
      isNodeAudited: () => this.#mode !== 'enforce',
    })
    return new Pipeline({
      registry,
      clients,
      verdicts: policies.dnsVerdicts,
      learner,
      committer: core.committer,
      upstream,
      responder,
      flows: new ProxyFlows({ ring, clock, inFlight: upstream.inFlight }),
      isReady: () => policies.loaded,
      seed: new RandomPool(systemRandom).uint16() * 65_536 + new RandomPool(systemRandom).uint16(),
      denyResponse: dns.denyResponse,
      onLimit: dns.hold.onLimit,
      onDegraded: dns.onDegraded,
    })
  }

  get mode(): Mode {
    return this.#mode
  }

  /** What keeps the daemon from being ready; empty when it is. */
  get notReady(): readonly string[] {
    const reasons: string[] = []
    if (!this.#bound) reasons.push('listeners are not bound')
    if (!this.policies.loaded) reasons.push('policy is not loaded')
    if (!this.#upstreamAnswered) reasons.push('no upstream has answered yet')
    if (this.core.committer.refused > 0) {
      reasons.push(`the datapath refuses ${this.core.committer.refused} entries`)
    }
    return reasons
  }

  /** Everything up, in the order that never lets a packet or an answer through too early. */
  async start(): Promise<void> {
    this.sources.load()
    this.#startMode()
    await this.listeners.start()
    this.#bound = true
    this.datapath.setListeners(this.listeners.entries)
    this.sources.apply()
    this.transition.finish()
    const known = new Set([...this.endpoints.registry].map(({ id }) => id))
    removeLeftovers(this.core, this.#restored, known)
    this.housekeeping.start()
    this.sources.start()
    void this.#probe()
  }

  async stop(): Promise<void> {
    this.sources.stop()
    this.housekeeping.stop()
    this.listeners.stop()
    this.upstream.stop()
    this.datapath.stop({ leaveEnforcing: true })
    await Promise.resolve()
  }

  setMode(mode: Mode): void {
    this.#mode = mode
    this.datapath.setMode(mode)
  }

  /** A bypass that was set by hand stays until it is taken back by hand. */
  #startMode(): void {
    const configured = this.config.audit.node ? 'audit' : 'enforce'
    this.setMode(this.#restored.mode === 'bypass' ? 'bypass' : configured)
  }

  async #probe(): Promise<void> {
    const options = {
      clock: this.clock,
      random: systemRandom,
      timeoutMs: this.config.upstreams.timeoutMs,
    }
    const answered = await Promise.all(this.servers.map((server) => probeServer(server, options)))
    this.#upstreamAnswered ||= answered.includes(true)
    this.servers.forEach(({ address, port }, i) => {
      if (answered[i] !== true)
        this.#log.warn({ server: address, port }, 'upstream does not answer')
    })
  }

  #onEvent(event: DatapathEvent): void {
    const kind = event.verdict === 'audit' ? 'audit' : 'drop'
    this.flows.addPacket(this.clock.wall(), { ...event, kind })
  }

  #onHooks(changed: readonly number[]): void {
    for (const id of changed) {
      const endpoint = this.endpoints.registry.byNumber(id)
      if (endpoint === undefined) continue
      this.#log.info(
        { endpoint: endpoint.name, hook: this.datapath.hookState(endpoint.id) },
        'hook changed',
      )
    }
  }
}

/** The configured servers, `system` resolved; throws when one is ourselves or there is none. */
function serversOf(config: Config): readonly ServerAddress[] {
  const { addresses, faults } = resolveUpstreams(
    config.upstreams.servers,
    config.listeners,
    ownAddresses(),
    systemResolvers,
  )
  if (faults.length > 0) throw new InvalidInputError(faults)
  if (addresses.length === 0) {
    throw new UnavailableError('No upstream server: name one under upstreams.servers')
  }
  return addresses.map(({ family, octets, port }) => {
    return { family, address: formatAddress(family, octets), port }
  })
}
