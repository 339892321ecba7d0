// DnsProxy makes the parts of the proxy and connects them; it does nothing else. Listeners fill batches, the admission forwards
// queries, the upstream asks servers, the settlement learns from answers and releases them, and the responder sends them.

import { TurnClock, type Clock } from '../core/clock.ts'
import type { CoreState } from '../enforcement/core-state.ts'
import type { FlowRing } from '../flows/record/flow-ring.ts'
import type { PolicyControl } from '../enforcement/policy-control.ts'
import { ServerIdentity } from '../enforcement/server-identity.ts'
import type { Config } from '../config/config.ts'
import type { EndpointRegistry } from '../endpoints/registry.ts'
import { Admission } from './pipeline/admit.ts'
import { Arrivals, ClientEndpoints, type Interfaces } from './pipeline/client-endpoints.ts'
import type { HandedQuery, HandedSockets } from './handed.ts'
import { Judge } from './pipeline/judge.ts'
import { makeLearner, type Learner } from './pipeline/learner.ts'
import { Listeners, type GivenSockets } from './server/listeners.ts'
import { Drain } from './drain.ts'
import { OwnQuestions } from './own-questions.ts'
import { exactNames, Prewarm } from './prewarm.ts'
import { ProxyFlows } from './pipeline/proxy-flows.ts'
import type { RandomSource } from '../core/random.ts'
import { Relay } from './handed-queries.ts'
import { Responder, type OwnQueries } from './server/responder.ts'
import { SelfCheck } from './self-check.ts'
import { Settlement } from './pipeline/settle.ts'
import { ReleaseQueue } from './pipeline/release-queue.ts'
import type { ServerAddress } from './upstream/server-pool.ts'
import { AskedServers } from './upstream/asked-servers.ts'
import { loadTcp, loadUdp } from '../native/native.ts'
import { CONNECTIONS_MAX } from './server/connection-table.ts'
import { Datagrams } from './sockets/datagrams.ts'
import { Streams } from './sockets/streams.ts'
import { Stripping } from './pipeline/stripping.ts'
import { UnknownClients } from './pipeline/unknown-clients.ts'
import { Upstream } from './upstream/upstream.ts'

export interface DnsProxyOptions {
  readonly config: Config
  readonly clock: Clock
  readonly random: RandomSource
  readonly core: CoreState
  readonly policies: PolicyControl
  readonly registry: EndpointRegistry
  readonly flows: FlowRing
  readonly servers: readonly ServerAddress[]
  readonly hasIpv6: boolean
  /** The interfaces of this host. */
  readonly interfaces: Interfaces
  /** Returns true while audit is on for the whole node: queries that policy denies pass and are reported. */
  readonly isNodeAudited: () => boolean
  /** Returns true while every name is refused, also a name that policy allows. Absent: never. */
  readonly isClosed?: () => boolean
  /** Listening sockets that are bound in another network namespace. */
  readonly sockets?: readonly GivenSockets[] | undefined
  /** Listening sockets of this network namespace that were bound before the start. */
  readonly passed?: readonly GivenSockets[] | undefined
}

/** Streams in addition to the connections of clients: connections that are refused in the turn they arrive, and connections to servers. */
const MORE_STREAMS = 512

export class DnsProxy {
  readonly streams: Streams
  readonly datagrams: Datagrams
  readonly upstream: Upstream
  readonly listeners: Listeners
  readonly responder: Responder
  readonly learner: Learner
  readonly stripping: Stripping
  readonly judge: Judge
  readonly unknown: UnknownClients
  readonly releases: ReleaseQueue
  readonly admission: Admission
  readonly settlement: Settlement
  readonly selfCheck: SelfCheck
  readonly drain: Drain
  /** Receives all answers and failures after another daemon has taken over; undefined before. */
  relay: Relay | undefined
  /** Undefined without `dns.prewarm`. */
  readonly prewarm: Prewarm | undefined
  /** Asks questions of an operator as if an endpoint asked them. */
  readonly ownQuestions = new OwnQuestions((batch) => this.admission.admitWaited(batch))
  readonly #clients: ClientEndpoints
  readonly #arrivals: Arrivals

  constructor(given: DnsProxyOptions) {
    const clock = new TurnClock(given.clock)
    const options = { ...given, clock }
    const { config, core, interfaces } = options
    const { limits } = config
    const mark = markOf(options)
    const capacity = Math.min(limits['tcp-connections'], CONNECTIONS_MAX) + MORE_STREAMS
    this.streams = new Streams({ addon: loadTcp(), clock, capacity, mark })
    const replySockets = limits['reply-sockets']
    this.datagrams = new Datagrams({ addon: loadUdp(), clock, time: clock, mark, replySockets })
    const asked = this.#makeAsked(options)
    this.judge = new Judge({
      verdicts: options.policies.dnsVerdicts,
      selectorLabels: core.selectorLabels,
      isClosed: options.isClosed,
      asked: asked && { servers: asked, identities: new ServerIdentity(core.ipcache) },
    })
    this.upstream = this.#makeUpstream(options, asked)
    this.listeners = new Listeners({
      clock,
      limits,
      configs: config.listeners,
      hasIpv6: options.hasIpv6,
      streams: this.streams,
      datagrams: this.datagrams,
      onBatch: (batch) => this.admission.admit(batch),
      given: options.sockets ?? options.passed,
    })
    this.responder = new Responder({
      udp: this.listeners.udp,
      tcp: this.listeners.tcp,
      inFlight: this.upstream.inFlight,
      udpMessageMax: limits['udp-message'],
      own: this.#makeOwn(),
    })
    this.learner = makeLearner(config.dns, core, options.policies)
    this.stripping = new Stripping({ guard: core.guard, learner: this.learner, dns: config.dns })
    this.#arrivals = new Arrivals({ clock, interfaces })
    const { ipcache, datapath } = core
    const { listeners } = this
    const clients = { ...options, datapath, ipcache, listeners, arrivals: this.#arrivals }
    this.#clients = new ClientEndpoints(clients)
    this.unknown = new UnknownClients({
      clock,
      waitMs: config.unknownClients.waitMs,
      stride: limits['udp-message'],
      isKnown: (columns, row) => this.#clients.of(columns, row) !== undefined,
      onEnd: (batch) => this.admission.admitWaited(batch),
    })
    this.releases = this.#makeReleases(options)
    const { committer } = core
    this.selfCheck = new SelfCheck({ ...options, committer, responder: this.responder })
    const flows = new ProxyFlows({ ring: options.flows, clock, inFlight: this.upstream.inFlight })
    this.admission = this.#makeAdmission(options, flows)
    this.settlement = this.#makeSettlement(given, flows)
    this.prewarm = this.#makePrewarm(options)
    this.drain = new Drain(clock, this)
  }

  /** Call it when endpoints or their hooks changed. Unknown clients can be known after that. */
  endpointsChanged(): void {
    this.#arrivals.forget()
    this.unknown.endpointsChanged()
    this.prewarm?.changed()
  }

  /** Binds the listeners. They read after `listeners.reading(true)`. Throws UnavailableError, which names the remedy. */
  start(): void {
    this.listeners.start()
    for (const [channel, mode] of this.listeners.modes.entries()) {
      if (mode !== 'explicit') this.#arrivals.judge(channel)
    }
    this.prewarm?.start()
  }

  stop(): void {
    this.prewarm?.stop()
    this.unknown.stop()
    this.releases.stop()
    this.listeners.stop()
    this.upstream.stop()
    this.datagrams.stop()
  }

  /**
   * Gives listeners and connections to a successor. After this call the proxy forwards no query. Until `stop`, `onQuery` receives
   * the answers to forwarded queries, and the queries that waited for their endpoint.
   */
  handOut(
    duplicate: (descriptor: number) => number,
    onQuery: (handed: HandedQuery) => void,
  ): HandedSockets {
    const relay = new Relay(this.upstream, onQuery)
    this.relay = relay
    this.prewarm?.stop()
    this.releases.stop()
    this.unknown.handOver((batch) => relay.admitWaited(batch))
    return this.listeners.handOut(duplicate)
  }

  /** Makes the servers that clients can choose; undefined if `upstreams.original-destination` is off. */
  #makeAsked({ config, servers, core }: DnsProxyOptions): AskedServers | undefined {
    const { originalDestination, trusted, untrusted } = config.upstreams
    if (!originalDestination) return undefined
    const identities = new ServerIdentity(core.ipcache)
    return new AskedServers({
      trusted,
      servers,
      untrusted,
      isOurs: (family, octets, port) => {
        identities.look(family, octets, 0)
        return this.listeners.receives(octets, port, identities.isNode)
      },
    })
  }

  #makeUpstream(options: DnsProxyOptions, asked: AskedServers | undefined): Upstream {
    const { config, clock, random, servers } = options
    return new Upstream({
      clock,
      random,
      servers,
      asked,
      streams: this.streams,
      datagrams: this.datagrams,
      onAnswers: (answers) => (this.relay ?? this.settlement).settle(answers),
      onFailures: (failures) => (this.relay ?? this.settlement).fail(failures),
      limits: {
        timeout: config.upstreams.timeoutMs,
        attempts: config.upstreams.attempts,
        inFlight: config.limits['queries-in-flight'],
        inFlightPerClient: config.limits['queries-in-flight-per-client'],
      },
    })
  }

  /** Gives answers to namegate's own queries to OwnQuestions or Prewarm, which use different ranges of ids. */
  #makeOwn(): OwnQueries {
    return {
      answered: (id, question, message) => {
        if (!OwnQuestions.owns(id)) return this.prewarm?.answered(id, question, message)
        const { octets, offset, length } = message
        this.ownQuestions.end(id, octets.slice(offset, offset + length))
      },
      unanswered: (id, reply) => {
        if (OwnQuestions.owns(id)) this.ownQuestions.end(id, reply?.octets.slice(0, reply.length))
        else this.prewarm?.unanswered(id)
      },
    }
  }

  #makePrewarm({ config, clock, registry, policies }: DnsProxyOptions): Prewarm | undefined {
    if (!config.dns.prewarm || config.upstreams.originalDestination) return undefined
    return new Prewarm({
      clock,
      endpoints: registry,
      namesOf: (id) => exactNames(policies.compiledOf(id)),
      onBatch: (batch) => this.admission.admitWaited(batch),
    })
  }

  #makeReleases({ clock, core, config }: DnsProxyOptions): ReleaseQueue {
    return new ReleaseQueue({
      clock,
      inFlight: this.upstream.inFlight,
      committer: core.committer,
      limitMs: config.dns.hold.limitMs,
      onSettle: (answers, isLast) => this.settlement.settleHeld(answers, isLast),
    })
  }

  #makeAdmission(options: DnsProxyOptions, flows: ProxyFlows): Admission {
    const { config, policies } = options
    return new Admission({
      clock: options.clock,
      clients: this.#clients,
      judge: this.judge,
      upstream: this.upstream,
      responder: this.responder,
      flows,
      unknown: this.unknown,
      onUnknown: config.unknownClients.onTimeout,
      isReady: () => policies.loaded && !this.drain.refuses,
      denyResponse: config.dns.denyResponse,
      selfCheck: this.selfCheck,
    })
  }

  #makeSettlement(options: DnsProxyOptions, flows: ProxyFlows): Settlement {
    const { clock, config, core, registry } = options
    return new Settlement({
      clock,
      registry,
      clients: this.#clients,
      judge: this.judge,
      learner: this.learner,
      committer: core.committer,
      upstream: this.upstream,
      responder: this.responder,
      releases: this.releases,
      flows,
      stripping: this.stripping,
      onLimit: config.dns.hold.onLimit,
      onDegraded: config.dns.onDegraded,
    })
  }
}

/** Returns the mark by which kernel rules recognize packets of this process; 0: there are no such rules. */
function markOf({ config, sockets }: DnsProxyOptions): number {
  const intercepts = config.listeners.some(({ mode }) => mode !== 'explicit')
  // The hooks of an nftables datapath can be in the network namespace of this process.
  const isInside = config.datapath.kind === 'nftables' && sockets === undefined
  return intercepts || isInside ? config.intercept.mark : 0
}
