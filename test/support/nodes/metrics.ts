// The sources of metrics over a node, with a different number in every counter of the proxy, and a strict reader of the exposition
// format.

import assert from 'node:assert/strict'
import { Histogram } from '../../../src/core/tables/histogram.ts'
import { newPageCounts } from '../../../src/admin/page/counts.ts'
import type { MetricsSources } from '../../../src/daemon/metrics-sources.ts'
import { EndpointVerdicts } from '../../../src/flows/record/endpoint-verdicts.ts'
import { EnforcementTimes } from '../../../src/kubernetes/cluster/enforcement-times.ts'
import { FLOW_KINDS } from '../../../src/flows/record/flow-kinds.ts'
import { AnswerTimes } from '../../../src/proxy/pipeline/answer-times.ts'
import { FakeClock } from '../fake-clock.ts'
import type { Node } from './node.ts'

/** Counters that return 1 for every name. */
function ones<Name extends string>(...names: readonly Name[]): Record<Name, number> {
  const counters = Object.fromEntries(names.map((name) => [name, 1]))
  return counters as Record<Name, number>
}

/** Counts 2 answers and 1 dropped packet of each endpoint of the node. */
function mkVerdicts(node: Node): EndpointVerdicts {
  const verdicts = new EndpointVerdicts()
  verdicts.keep(node.endpoints.registry)
  for (const { id } of node.endpoints.registry)
    for (const kind of ['answered', 'answered', 'drop'] as const)
      verdicts.add(FLOW_KINDS.indexOf(kind), id)
  return verdicts
}

function mkTimes(...milliseconds: readonly number[]): Histogram {
  const histogram = new Histogram()
  for (const each of milliseconds) histogram.add(each)
  return histogram
}

function mkAnswerTimes(): AnswerTimes {
  const clock = new FakeClock()
  const times = new AnswerTimes({ clock, inFlight: { admittedAt: Float64Array.of(clock.now()) } })
  clock.advance(3)
  times.look()
  times.add(times.exact, 0)
  return times
}

export function mkSources(node: Node, given: Partial<MetricsSources> = {}): MetricsSources {
  return {
    version: '1.2.3',
    notReady: [],
    core: node.core,
    proxy: mkProxy(),
    flows: { verdicts: mkVerdicts(node) },
    emptyDenies: { texts: ['a', 'b'] },
    adoption: { counters: ones('endpoints', 'flows', 'notTaken') },
    interception: { counters: ones('repairs'), isInForce: true },
    repair: { counters: ones('walks', 'repaired') },
    policies: node.policies,
    transition: node.transition,
    endpoints: node.endpoints,
    sources: {
      policyFiles: [{ state: 'in-force' }, { state: 'last-good' }],
      recordFiles: [{ state: 'rejected' }],
      ages: { ages: () => [['policies', 0]] },
      fileTexts: { tooLong: 0 },
    },
    cluster: {
      collections: [
        { kind: 'Pod', state: 'watching', reason: '', objects: 3, faulty: 0, held: 0, age: 1 },
      ],
      counts: () => new Map([['start', 1]]),
      leftOut: new Map([['finished', 1]]),
      times: new EnforcementTimes(new FakeClock()),
      events: { counts: ones('written', 'refused', 'forbidden', 'failed') },
    },
    mode: { now: 'enforce' },
    limits: [
      { limit: 'pairs', use: 1, bound: 2, hits: 3 },
      { limit: 'queries-in-flight-per-client', use: undefined, bound: 4, hits: 5 },
    ],
    keptFlows: undefined,
    state: undefined,
    putBack: undefined,
    page: newPageCounts(),
    ...given,
  }
}

function mkProxy(): MetricsSources['proxy'] {
  const udp = ones(
    'received',
    'sent',
    'ignoredSources',
    'kernelDrops',
    'oversized',
    'socketErrors',
    'sendsDropped',
  )
  return {
    admission: {
      counters: {
        ...ones('unmanaged', 'interfaceMismatch', 'passedOver', 'overloaded'),
        ...ones('queries', 'allowed', 'audited', 'unknownClients', 'notReady', 'malformedQueries'),
        denied: 42,
      },
    },
    settlement: {
      counters: {
        ...ones('answers', 'malformedAnswers', 'failedTimeout', 'failedSocket'),
        ...ones('orphaned', 'exact', 'degraded', 'heldOut'),
        ...ones('heldOutServfail', 'heldOutDropped', 'heldOutReleased'),
      },
      times: mkAnswerTimes(),
    },
    judge: { counters: ones('serverDenied', 'serverUntrusted') },
    learner: { counters: { addresses: 10, guarded: 2, overBound: 3 } },
    releases: {
      count: 1,
      counters: ones('held', 'overdue', 'overBound'),
      times: { datapath: mkTimes(0.2, 5, 1500), order: mkTimes() },
    },
    responder: { counters: ones('truncated') },
    stripping: {
      counters: ones('stripped', 'failed'),
      taken: ones('addresses', 'hints', 'unreadable', 'signatures'),
    },
    prewarm: { counters: ones('asked', 'answered', 'unanswered', 'leftOut') },
    unknown: {
      waiting: 1,
      times: mkTimes(2000),
      counters: {
        ...ones('held', 'becameKnown', 'timedOut'),
        ...ones('refusedFull', 'refusedClientFull', 'refusedLong'),
      },
    },
    upstream: mkUpstream(),
    listeners: {
      udp: [{ counters: udp }],
      tcp: {
        counters: {
          ...ones('accepted', 'open', 'received', 'sent', 'refusedFull', 'refusedClientFull'),
          ...ones('evicted', 'closedIdle', 'closedIncomplete', 'closedSlowReader', 'readsPaused'),
          ...ones('answersDropped', 'socketErrors'),
        },
      },
    },
  }
}

function mkUpstream(): MetricsSources['proxy']['upstream'] {
  const link = {
    ...ones('open', 'opened', 'portsTaken', 'openFailures'),
    ...ones('sendsDropped', 'socketErrors', 'kernelDrops'),
  }
  return {
    counters: {
      ...ones('forwarded', 'refusedFull', 'refusedClientFull', 'answers', 'timeouts'),
      ...ones('socketFailures', 'unexpected', 'mismatched', 'late', 'coalesced'),
    },
    attempts: { counters: ones('retries', 'retriesDenied', 'mismatchRepeats', 'repeatsDenied') },
    waits: { counters: ones('sentUdp', 'sentTcp', 'unsendable') },
    pool: {
      servers: [{ address: '192.0.2.53', port: 53, family: 4 }],
      failures: Uint32Array.of(7),
      answers: Float64Array.of(9),
      failed: Float64Array.of(8),
      first: 0,
      rtt: { means: Float64Array.of(250) },
      roundTrips: [mkTimes(250, 20_000), mkTimes()],
      isDown: () => true,
      counters: ones('failovers', 'downs', 'ups'),
    },
    probes: { sent: Float64Array.of(3) },
    links: { asked: { open: 2, counters: ones('opened', 'closed', 'refused') } },
    inFlight: { count: 5 },
    udp: [{ counters: link }, { counters: link }],
    tcp: [{ counters: ones('open', 'opened', 'faults', 'closedIdle', 'sendsDropped') }],
  }
}

export interface Exposed {
  readonly help: ReadonlyMap<string, string>
  readonly types: ReadonlyMap<string, string>
  /** `name{label="value"}` to value. */
  readonly samples: ReadonlyMap<string, number>
}

/** Reads Prometheus' text format 0.0.4. Fails at any line that is not a comment, a sample or empty. */
export function readExposition(text: string): Exposed {
  const help = new Map<string, string>()
  const types = new Map<string, string>()
  const samples = new Map<string, number>()
  for (const line of text.split('\n')) {
    if (line === '') continue
    const comment = /^# (HELP|TYPE) ([a-z_][a-z0-9_]*) (.+)$/.exec(line)
    const sample =
      /^([a-z_][a-z0-9_]*(?:\{[a-z_]+="(?:[^"\\\n]|\\["\\n])*"(?:,[a-z_]+="(?:[^"\\\n]|\\["\\n])*")*\})?) (-?[0-9.e+-]+|NaN|\+Inf)$/.exec(
        line,
      )
    if (comment !== null) {
      const [, kind, name = '', rest = ''] = comment
      const into = kind === 'HELP' ? help : types
      assert.ok(!into.has(name), `${name} is described once`)
      into.set(name, rest)
    } else {
      assert.ok(sample !== null, `cannot read: ${line}`)
      assert.ok(!samples.has(sample[1] ?? ''), `${sample[1]} is there once`)
      samples.set(sample[1] ?? '', Number(sample[2]))
    }
  }
  return { help, types, samples }
}
