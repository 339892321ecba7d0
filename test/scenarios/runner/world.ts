// The real parts of the daemon on fake time, connected as in src/daemon/daemon.ts and src/proxy/dns-proxy.ts. Clients, server and datapath
// are models in memory. Tables are only as large as a scenario needs.

import assert from 'node:assert/strict'
import { parseConfig } from '../../../src/config/load.ts'
import type { Config } from '../../../src/config/config.ts'
import { CoreState } from '../../../src/enforcement/core-state.ts'
import { EndpointControl } from '../../../src/enforcement/endpoint-control.ts'
import { FlowRing } from '../../../src/flows/record/flow-ring.ts'
import { Housekeeping } from '../../../src/reconcile/housekeeping.ts'
import { FlowBegins, packetFlowOf } from '../../../src/flows/record/packet-flow.ts'
import { PolicyControl } from '../../../src/enforcement/policy-control.ts'
import { IdentityLabels } from '../../../src/policy/identity-labels.ts'
import { Transition } from '../../../src/enforcement/transition.ts'
import type { Prefix } from '../../../src/core/ip.ts'
import type { Policy } from '../../../src/policy/rule.ts'
import { Admission } from '../../../src/proxy/pipeline/admit.ts'
import { BatchCollector } from '../../../src/proxy/messages/batch.ts'
import { ClientEndpoints } from '../../../src/proxy/pipeline/client-endpoints.ts'
import { UnknownClients } from '../../../src/proxy/pipeline/unknown-clients.ts'
import { Judge } from '../../../src/proxy/pipeline/judge.ts'
import type { Learner } from '../../../src/proxy/pipeline/learner.ts'
import { makeLearner } from '../../../src/proxy/pipeline/learner.ts'
import { Settlement } from '../../../src/proxy/pipeline/settle.ts'
import { ProxyFlows } from '../../../src/proxy/pipeline/proxy-flows.ts'
import { ReleaseQueue } from '../../../src/proxy/pipeline/release-queue.ts'
import { Stripping } from '../../../src/proxy/pipeline/stripping.ts'
import { Responder } from '../../../src/proxy/server/responder.ts'
import type { Endpoint } from '../../../src/endpoints/registry.ts'
import type { Datapath } from '../../../src/datapath/datapath.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { SlowDatapath } from '../../support/models/slow-datapath.ts'
import { Clients } from './client.ts'
import { ScenarioKernel } from './kernel.ts'
import { ScenarioUpstream } from './upstream.ts'
import { Zone } from './zone.ts'

const PAIRS_MAX = 20_000
const CONFIGURED_PREFIXES_MAX = 2_000
const IN_FLIGHT_MAX = 1_024
const SECOND_MS = 1000
/** Scenarios begin in the middle of a second, like most queries. So a time that is counted in whole seconds ends between two seconds. */
const HALF_PAST = 1_000_500

export class World {
  readonly clock = new FakeClock(HALF_PAST)
  readonly zone = new Zone()
  readonly clients = new Clients()
  readonly flows = new FlowRing()
  readonly flowBegins = new FlowBegins()
  readonly config: Config
  readonly kernel: ScenarioKernel
  /** Between node and datapath; delays commits on request. */
  readonly slow: SlowDatapath
  readonly core: CoreState
  readonly policies: PolicyControl
  readonly endpoints: EndpointControl
  readonly housekeeping: Housekeeping
  readonly transition: Transition
  readonly upstream: ScenarioUpstream
  readonly responder: Responder
  readonly learner: Learner
  readonly stripping: Stripping
  readonly admission: Admission
  readonly settlement: Settlement
  readonly unknown: UnknownClients
  readonly releases: ReleaseQueue
  readonly collector: BatchCollector
  /** Names matched against the patterns of policy. */
  readonly matches = { names: 0 }
  readonly policyFiles = new Map<string, readonly Policy[]>()

  constructor(configText: string, nodeAddresses: readonly Prefix[]) {
    const config = parseConfig(configText, 'CONFIG', () => false)
    const { clock } = this
    this.config = config
    this.kernel = makeKernel(config, clock)
    this.slow = new SlowDatapath(this.kernel, clock)
    const restored = this.kernel.start()
    this.core = makeCore(config, clock, this.slow, nodeAddresses)
    const { core } = this
    const match = core.patterns.match.bind(core.patterns)
    core.patterns.match = (wire, offset) => {
      this.matches.names++
      return match(wire, offset)
    }
    this.policies = new PolicyControl({
      core,
      defaultEgress: config.defaultEgress,
      withoutDnsRules: config.dns.withoutRules,
      staticIdentitiesMax: config.limits['static-identities'],
      identityLabels: new IdentityLabels(config.endpoints.identityLabels, config.clusterName),
    })
    const { policies } = this
    const endpointsMax = 256
    this.endpoints = new EndpointControl({ core, policies, restored, nodeAddresses, endpointsMax })
    this.transition = new Transition({ core, policies })
    this.housekeeping = new Housekeeping({
      core,
      transition: this.transition,
      onEvent: (event, time) => this.flows.addPacket(time, packetFlowOf(this, event)),
      onHooks: () => assert.fail('the memory datapath has no hooks'),
    })
    this.upstream = this.#makeUpstream()
    const { udp, tcp } = this.clients
    const { inFlight } = this.upstream
    this.responder = new Responder({
      udp,
      tcp,
      inFlight,
      udpMessageMax: config.limits['udp-message'],
    })
    this.learner = makeLearner(config.dns, core, policies)
    this.stripping = new Stripping({ guard: core.guard, learner: this.learner, dns: config.dns })
    const { registry } = this.endpoints
    const { ipcache } = core
    const isNodeAudited = (): boolean => this.kernel.mode.read() !== 'enforce'
    const datapath = this.kernel
    const clients = new ClientEndpoints({ registry, datapath, ipcache, isNodeAudited })
    this.unknown = new UnknownClients({
      clock,
      waitMs: config.unknownClients.waitMs,
      stride: config.limits['udp-message'],
      isKnown: (columns, row) => clients.of(columns, row) !== undefined,
      onEnd: (batch) => this.admission.admitWaited(batch),
    })
    this.releases = new ReleaseQueue({
      clock,
      inFlight,
      committer: core.committer,
      limitMs: config.dns.hold.limitMs,
      onSettle: (answers, isLast) => this.settlement.settleHeld(answers, isLast),
    })
    const { admission, settlement } = this.#makeWay(clients)
    this.admission = admission
    this.settlement = settlement
    this.collector = new BatchCollector({
      clock,
      onBatch: (batch) => this.admission.admit(batch),
    })
    this.housekeeping.start()
  }

  endpoint(name: string): Endpoint {
    const endpoint = this.endpoints.registry.byName(name)
    assert.ok(endpoint !== undefined, `${name} is an endpoint`)
    return endpoint
  }

  /** Runs everything that is due at this moment, and its effects. */
  settle(): void {
    this.clock.advance(0)
  }

  #makeUpstream(): ScenarioUpstream {
    const { clock, zone, config } = this
    return new ScenarioUpstream({
      clock,
      zone,
      capacity: Math.min(IN_FLIGHT_MAX, config.limits['queries-in-flight']),
      perClient: config.limits['queries-in-flight-per-client'],
      timeoutMs: config.upstreams.timeoutMs,
      onAnswers: (answers) => this.settlement.settle(answers),
      onFailures: (failures) => this.settlement.fail(failures),
    })
  }

  #makeWay(clients: ClientEndpoints): { admission: Admission; settlement: Settlement } {
    const { config, clock, core, policies, responder, upstream } = this
    const { selectorLabels } = core
    const judge = new Judge({ verdicts: policies.dnsVerdicts, selectorLabels })
    const flows = new ProxyFlows({ ring: this.flows, clock, inFlight: upstream.inFlight })
    const shared = { clients, judge, upstream, responder, flows }
    const admission = new Admission({
      ...shared,
      clock,
      unknown: this.unknown,
      onUnknown: config.unknownClients.onTimeout,
      isReady: () => policies.loaded,
      denyResponse: config.dns.denyResponse,
    })
    const settlement = new Settlement({
      ...shared,
      clock,
      registry: this.endpoints.registry,
      learner: this.learner,
      committer: core.committer,
      releases: this.releases,
      onLimit: config.dns.hold.onLimit,
      onDegraded: config.dns.onDegraded,
      stripping: this.stripping,
    })
    return { admission, settlement }
  }
}

function makeKernel({ limits }: Config, clock: FakeClock): ScenarioKernel {
  return new ScenarioKernel({
    clock,
    prefixesMax: PAIRS_MAX + CONFIGURED_PREFIXES_MAX,
    policyEntriesMax: 65_536,
    connectionsPerEndpoint: limits['connections-per-endpoint'],
    tcpIdleMs: 6 * 3600 * SECOND_MS,
    udpIdleMs: 180 * SECOND_MS,
  })
}

function makeCore(
  { limits, dns, learning }: Config,
  clock: FakeClock,
  datapath: Datapath,
  nodeAddresses: readonly Prefix[],
): CoreState {
  return new CoreState({
    clock,
    datapath,
    restored: datapath.dump(),
    limits: {
      names: { ...limits, pairs: Math.min(PAIRS_MAX, limits.pairs) },
      dynamicIdentities: limits['dynamic-identities'],
      dynamicIdentitiesPerEndpoint: limits['dynamic-identities-per-endpoint'],
      policyEntries: limits['policy-entries'],
      configuredPrefixes: CONFIGURED_PREFIXES_MAX,
    },
    graceSeconds: Math.ceil(dns.graceAfterTtlMs / SECOND_MS),
    learning,
    nodeAddresses,
    protectedPrefixes: dns.protectedPrefixes,
  })
}
