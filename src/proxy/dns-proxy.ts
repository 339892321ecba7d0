// The proxy put together: listeners fill batches, the pipeline admits them, the upstream asks, the pipeline
// settles what comes back, the responder sends it. Wiring only.

import type { Clock } from '../core/clock.ts'
import type { CoreState } from '../enforcement/core-state.ts'
import type { FlowRing } from '../flows/record/flow-ring.ts'
import type { PolicyControl } from '../enforcement/policy-control.ts'
import { ServerIdentity } from '../enforcement/server-identity.ts'
import type { Config } from '../config/config.ts'
import type { EndpointRegistry } from '../endpoints/registry.ts'
import { Arrivals, type Interfaces } from './pipeline/arrivals.ts'
import { Backlog } from './pipeline/backlog.ts'
import { ClientEndpoints } from './pipeline/client-endpoints.ts'
import type { HandedQuery, HandedSockets } from './handed.ts'
import { Judge } from './pipeline/judge.ts'
import { makeLearner, type Learner } from './pipeline/learner.ts'
import { Listeners, type GivenSockets } from './server/listeners.ts'
import { Pipeline } from './pipeline/pipeline.ts'
import { Drain } from './drain.ts'
import { OwnQuestions } from './own-questions.ts'
import { exactNames, Prewarm } from './prewarm.ts'
import { ProxyFlows } from './pipeline/proxy-flows.ts'
import type { RandomSource } from './random.ts'
import { Relay } from './handed-queries.ts'
import { Responder, type OwnQueries } from './server/responder.ts'
import { SelfCheck } from './self-check.ts'
import { ReleaseQueue } from './pipeline/release-queue.ts'
import type { ServerAddress } from './upstream/server-pool.ts'
import { AskedServers } from './upstream/asked-servers.ts'
import type { Datagrams } from './sockets/datagrams.ts'
import { openDatagrams, openStreams } from './sockets/open-sockets.ts'
import type { Streams } from './sockets/streams.ts'
import { Stripping } from './pipeline/stripping.ts'
import { UnknownClients } from './pipeline/unknown-clients.ts'
import { TurnClock } from './turn-clock.ts'
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
  /** The interfaces there are; undefined without the native part, whose sockets alone say where a query came in. */
  readonly interfaces: Interfaces | undefined
  /** Whether what policy denies on the whole node passes and is reported. */
  readonly isNodeAudited: () => boolean
  /** Whether no name may be asked, whatever policy says. Absent: never. */
  readonly isClosed?: () => boolean
  /** Listening sockets of another network namespace. */
  readonly sockets?: readonly GivenSockets[] | undefined
  /** Those of our own that were bound before we started. */
  readonly passed?: readonly GivenSockets[] | undefined
}

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
  readonly pipeline: Pipeline
  readonly selfCheck: SelfCheck
  readonly drain: Drain
  /** Where answers go once another daemon has taken over. */
  relay: Relay | undefined
  /** Undefined when nothing is asked of our own accord. */
  readonly prewarm: Prewarm | undefined
  /** Of persons, in the name of endpoints. */
  readonly ownQuestions = new OwnQuestions((batch) => this.pipeline.admitWaited(batch))
  readonly #clients: ClientEndpoints
  readonly #arrivals: Arrivals | undefined

  constructor(given: DnsProxyOptions) {
    const clock = new TurnClock(given.clock)
    const options = { ...given, clock }
    const { config, core, interfaces } = options
    const { limits } = config
    const intercepts = config.listeners.some(({ mode }) => mode !== 'explicit')
    // Rules know us by it: those of interception, and of a datapath whose hooks are in our own namespace.
    const isInside = config.datapath.kind === 'nftables' && options.sockets === undefined
    const mark = intercepts || isInside ? config.intercept.mark : 0
    this.streams = openStreams({ clock, connections: limits['tcp-connections'], mark })
    this.datagrams = openDatagrams({ clock, mark, replySockets: limits['reply-sockets'] })
    const asked = this.#makeAsked(options)
    this.judge = new Judge({
      verdicts: options.policies.dnsVerdicts,
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
      onBatch: (batch) => this.pipeline.admit(batch),
      given: options.sockets ?? options.passed,
    })
    this.responder = new Responder({
      udp: this.listeners.udp,
      tcp: this.listeners.tcp,
      inFlight: this.upstream.inFlight,
      udpMessageMax: limits['udp-message'],
      own: this.#makeOwn(),
    })
    this.learner = makeLearner(options)
    this.stripping = new Stripping({ guard: core.guard, learner: this.learner, dns: config.dns })
    this.#arrivals = interfaces === undefined ? undefined : new Arrivals({ clock, interfaces })
    const { ipcache, datapath } = core
    const { listeners } = this
    const clients = { ...options, datapath, ipcache, listeners, arrivals: this.#arrivals }
    this.#clients = new ClientEndpoints(clients)
    this.unknown = new UnknownClients({
      clock,
      waitMs: config.unknownClients.waitMs,
      stride: limits['udp-message'],
      isKnown: (columns, row) => this.#clients.of(columns, row) !== undefined,
      onEnd: (batch) => this.pipeline.admitWaited(batch),
    })
    this.releases = this.#makeReleases(options)
    const { committer } = core
    this.selfCheck = new SelfCheck({ ...options, committer, responder: this.responder })
    this.pipeline = this.#makePipeline(options)
    this.prewarm = this.#makePrewarm(options)
    this.drain = new Drain(clock, this)
  }

  /** Endpoints or their hooks changed: unknown clients may be known now. */
  endpointsChanged(): void {
    this.#arrivals?.forget()
    this.unknown.endpointsChanged()
    this.prewarm?.changed()
  }

  /** Binds the listeners; throws UnavailableError with the remedy. */
  async start(): Promise<void> {
    await this.listeners.start()
    for (const [channel, mode] of this.listeners.modes.entries()) {
      if (mode !== 'explicit') this.#arrivals?.judge(channel)
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
   * Takes nothing on any more and gives away all that clients have of us. Answers to what was forwarded, and what waits
   * to be forwarded, go to `onQuery` from now on, until `stop`.
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

  /** The servers that clients ask, where clients choose the server. */
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
      onAnswers: (answers) => (this.relay ?? this.pipeline).settle(answers),
      onFailures: (failures) => (this.relay ?? this.pipeline).fail(failures),
      limits: {
        timeout: config.upstreams.timeoutMs,
        attempts: config.upstreams.attempts,
        inFlight: config.limits['queries-in-flight'],
        inFlightPerClient: config.limits['queries-in-flight-per-client'],
      },
    })
  }

  /** Queries of our own know each other by their ids. */
  #makeOwn(): OwnQueries {
    return {
      answered: (id, question, message) => {
        if (!OwnQuestions.owns(id)) return this.prewarm?.answered(id, question, message)
        const { octets, offset, length } = message
        this.ownQuestions.end(id, octets.slice(offset, offset + length))
      },
      unanswered: (id, octets, length) => {
        if (OwnQuestions.owns(id)) this.ownQuestions.end(id, octets?.slice(0, length))
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
      onBatch: (batch) => this.pipeline.admitWaited(batch),
    })
  }

  #makeReleases({ clock, core, config }: DnsProxyOptions): ReleaseQueue {
    return new ReleaseQueue({
      clock,
      inFlight: this.upstream.inFlight,
      committer: core.committer,
      limitMs: config.dns.hold.limitMs,
      onSettle: (answers, isLast) => this.pipeline.settleHeld(answers, isLast),
    })
  }

  #makePipeline(options: DnsProxyOptions): Pipeline {
    const { core, policies, registry, clock, config } = options
    const { upstream, responder, learner, unknown, releases } = this
    const { committer } = core
    return new Pipeline({
      registry,
      clients: this.#clients,
      backlog: new Backlog({ clock }),
      unknown,
      onUnknown: config.unknownClients.onTimeout,
      judge: this.judge,
      learner,
      committer,
      upstream,
      responder,
      releases,
      flows: new ProxyFlows({ ring: options.flows, clock, inFlight: upstream.inFlight }),
      isReady: () => policies.loaded && !this.drain.refuses,
      denyResponse: config.dns.denyResponse,
      onLimit: config.dns.hold.onLimit,
      onDegraded: config.dns.onDegraded,
      stripping: this.stripping,
      selfCheck: this.selfCheck,
    })
  }
}
