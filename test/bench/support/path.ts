// The packet path, connected as in DnsProxy, over an addon without a kernel. The learner marks where its part of a turn begins and ends.

import { FlowRing } from '../../../src/flows/record/flow-ring.ts'
import { systemClock } from '../../../src/core/clock.ts'
import type { Pattern } from '../../../src/policy/match/pattern.ts'
import { parseMatchPattern } from '../../../src/policy/match/pattern.ts'
import type { Policy } from '../../../src/policy/rule.ts'
import { Admission } from '../../../src/proxy/pipeline/admit.ts'
import { ClientEndpoints } from '../../../src/proxy/pipeline/client-endpoints.ts'
import { AnswerSettings } from '../../../src/proxy/pipeline/answer-settings.ts'
import { Stripping } from '../../../src/proxy/pipeline/stripping.ts'
import { BatchCollector } from '../../../src/proxy/messages/batch.ts'
import { Judge } from '../../../src/proxy/pipeline/judge.ts'
import { Learner, type LearnerOptions } from '../../../src/proxy/pipeline/learner.ts'
import { Settlement } from '../../../src/proxy/pipeline/settle.ts'
import { ProxyFlows } from '../../../src/proxy/pipeline/proxy-flows.ts'
import { systemRandom } from '../../../src/core/random.ts'
import { ReleaseQueue } from '../../../src/proxy/pipeline/release-queue.ts'
import { Responder } from '../../../src/proxy/server/responder.ts'
import { Datagrams } from '../../../src/proxy/sockets/datagrams.ts'
import { Upstream } from '../../../src/proxy/upstream/upstream.ts'
import { COMMIT, LEARN, LoopAddon, RELEASE } from './loop-addon.ts'
import { mkMemory, mkPolicy, mkWorld, type World } from './world.ts'

const ZONES = [0, 1, 2, 3].map((zone) => `*.z${zone}.bench.test`)

export interface Path {
  readonly addon: LoopAddon
  readonly admission: Admission
  readonly settlement: Settlement
  readonly world: World
  stop(): void
}

export function mkPath(): Path {
  const world = mkWorld(mkMemory(), [mkPolicy('p', ZONES), mkDnsPolicy()])
  const { core } = world
  const { registry } = world.endpoints
  const clock = systemClock
  const addon = new LoopAddon()
  const datagrams = new Datagrams({ addon, clock })
  const collector = new BatchCollector({ clock, onBatch: (batch) => admission.admit(batch) })
  datagrams.fill(collector)
  const upstream = new Upstream({
    clock,
    random: systemRandom,
    servers: [{ family: 4, address: '192.0.2.53', port: 53 }],
    streams: { connect: unused },
    datagrams,
    onAnswers: (answers) => settlement.settle(answers),
    onFailures: (failures) => settlement.fail(failures),
  })
  const { inFlight } = upstream
  const listener = datagrams.listen({
    channel: 0,
    family: 4,
    octets: Uint8Array.of(192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
    port: 53,
    mode: 'explicit',
  })
  const tcp = { reply: unused, noReply: unused }
  const learner = new MarkedLearner(addon, {
    names: core.names,
    ipcache: core.ipcache,
    committer: core.committer,
    guard: core.guard,
    selectorLabels: core.selectorLabels,
    settings: new AnswerSettings(world.policies, {
      minTtl: 5,
      grace: 60,
      cnameMatch: 'question',
      svcb: 'learn',
    }),
    maxTtl: 86_400,
  })
  const shared = {
    clients: new ClientEndpoints({
      registry,
      datapath: core.datapath,
      ipcache: core.ipcache,
      isNodeAudited: () => false,
    }),
    judge: new Judge({
      verdicts: world.policies.dnsVerdicts,
      selectorLabels: core.selectorLabels,
    }),
    upstream,
    responder: new Responder({ udp: [listener], tcp, inFlight }),
    flows: new ProxyFlows({ ring: new FlowRing(), clock, inFlight }),
  }
  const admission = new Admission({
    ...shared,
    clock,
    unknown: { hold: () => 'no-wait' },
    onUnknown: 'refuse',
    isReady: () => true,
    denyResponse: 'refused',
  })
  const settlement = new Settlement({
    ...shared,
    clock,
    registry,
    learner,
    committer: core.committer,
    releases: new ReleaseQueue({
      clock,
      inFlight,
      committer: core.committer,
      limitMs: 100,
      onSettle: (answers, isLast) => settlement.settleHeld(answers, isLast),
    }),
    onLimit: 'servfail',
    onDegraded: 'release',
    stripping: new Stripping({
      guard: core.guard,
      learner,
      dns: { guard: 'pass', onDegraded: 'release' },
    }),
  })
  const stop = (): void => (upstream.stop(), datagrams.stop())
  return { addon, admission, settlement, world, stop }
}

class MarkedLearner extends Learner {
  readonly #addon: LoopAddon

  constructor(addon: LoopAddon, options: LearnerOptions) {
    super(options)
    this.#addon = addon
  }

  override begin(again?: boolean): void {
    this.#addon.mark(LEARN)
    super.begin(again)
  }

  override get changed(): boolean {
    this.#addon.mark(COMMIT)
    return super.changed
  }

  override isOrphan(i: number): boolean {
    if (i === 0) this.#addon.mark(RELEASE)
    return super.isOrphan(i)
  }
}

/** Policy lets clients ask names of the zones. */
function mkDnsPolicy(): Policy {
  const policy = mkPolicy('dns', ZONES)
  const [rule] = policy.rules
  if (rule === undefined) throw new Error('Cannot allow names: no rule')
  const ports = [{ protocol: 17, low: 53, high: 53 }]
  const toPorts = [{ ports, dns: ZONES.map(mkPattern) }]
  return { ...policy, rules: [{ ...rule, peers: { kind: 'any' }, toPorts }] }
}

function mkPattern(text: string): Pattern {
  const parsed = parseMatchPattern(text)
  if (parsed.kind === 'bad') throw new Error(parsed.reason)
  return parsed.pattern
}

function unused(): never {
  throw new Error('Cannot use TCP: no query came over TCP')
}
