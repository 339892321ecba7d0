// What became of queries and answers, and what answers taught.

import type { Registry } from 'prom-client'
import { addCounter, addGauge } from './build.ts'
import { sumOf, type MetricsSources } from './sources.ts'

const MS_PER_SECOND = 1000

export function addDnsMetrics(registry: Registry, sources: MetricsSources): void {
  addQueryMetrics(registry, sources)
  addUnknownMetrics(registry, sources)
  addPrewarmMetrics(registry, sources)
  addAnswerMetrics(registry, sources)
  addHoldMetrics(registry, sources)
  addStripMetrics(registry, sources)
}

function addQueryMetrics(registry: Registry, sources: MetricsSources): void {
  const { pipeline, listeners, judge } = sources
  addCounter(registry, {
    name: 'dns_queries_total',
    help: 'Queries from clients by what was decided',
    label: 'verdict',
    read: () => {
      const counters = pipeline.counters
      return [
        ['allowed', counters.allowed],
        ['denied', counters.denied],
        ['unknown_client', counters.unknownClients],
        ['interface_mismatch', counters.interfaceMismatch],
        ['not_ready', counters.notReady],
        ['malformed', counters.malformedQueries],
        ['overloaded', counters.overloaded],
        ['passed_over', counters.passedOver],
      ]
    },
  })
  addCounter(registry, {
    name: 'dns_servers_refused_total',
    help: 'Queries to a server of the client’s choice that policy does not admit, or that is not trusted',
    label: 'reason',
    read: () => [
      ['policy', judge.counters.serverDenied],
      ['untrusted', judge.counters.serverUntrusted],
    ],
  })
  addCounter(registry, {
    name: 'dns_queries_audited_total',
    help: 'Queries that policy denied and audit let pass; they count as allowed too',
    read: () => pipeline.counters.audited,
  })
  addCounter(registry, {
    name: 'dns_udp_messages_total',
    help: 'Messages on the UDP listeners',
    label: 'event',
    read: () => [
      ['received', sumOf(listeners.udp, 'received')],
      ['sent', sumOf(listeners.udp, 'sent')],
      ['ignored_source', sumOf(listeners.udp, 'ignoredSources')],
      ['oversized', sumOf(listeners.udp, 'oversized')],
      ['send_dropped', sumOf(listeners.udp, 'sendsDropped')],
      ['socket_error', sumOf(listeners.udp, 'socketErrors')],
      ['kernel_drop', sumOf(listeners.udp, 'kernelDrops')],
    ],
  })
}

function addUnknownMetrics(registry: Registry, { pipeline, unknown }: MetricsSources): void {
  addCounter(registry, {
    name: 'dns_queries_unmanaged_total',
    help: 'Queries of unknown clients that were forwarded (allow-unmanaged); they count as allowed too',
    read: () => pipeline.counters.unmanaged,
  })
  addGauge(registry, {
    name: 'unknown_client_queries_waiting',
    help: 'Queries that wait for their client to become a known endpoint',
    read: () => unknown.waiting,
  })
  addCounter(registry, {
    name: 'unknown_client_queries_total',
    help: 'Queries of unknown clients by how their wait ended; those over a bound did not wait',
    label: 'result',
    read: () => {
      const { becameKnown, timedOut, refusedFull, refusedClientFull, refusedLong } =
        unknown.counters
      return [
        ['became_known', becameKnown],
        ['timed_out', timedOut],
        ['over_bound', refusedFull + refusedClientFull + refusedLong],
      ]
    },
  })
}

/** All zero when `dns.prewarm` is off. */
function addPrewarmMetrics(registry: Registry, sources: MetricsSources): void {
  addCounter(registry, {
    name: 'dns_prewarm_total',
    help: 'Exact names of policies that dns.prewarm asks',
    label: 'event',
    read: () => {
      const counters = sources.prewarm?.counters
      return [
        ['asked', counters?.asked ?? 0],
        ['answered', counters?.answered ?? 0],
        ['unanswered', counters?.unanswered ?? 0],
      ]
    },
  })
  addGauge(registry, {
    name: 'dns_prewarm_left_out',
    help: 'Questions that dns.prewarm leaves out because of its bound',
    read: () => sources.prewarm?.counters.leftOut ?? 0,
  })
}

function addAnswerMetrics(
  registry: Registry,
  { pipeline, learner, responder }: MetricsSources,
): void {
  addCounter(registry, {
    name: 'dns_answers_total',
    help: 'Answers from upstream by outcome',
    label: 'outcome',
    read: () => {
      const counters = pipeline.counters
      return [
        ['exact', counters.exact],
        ['degraded', counters.degraded],
        ['held_out', counters.heldOut],
        ['malformed', counters.malformedAnswers],
        ['orphaned', counters.orphaned],
      ]
    },
  })
  addCounter(registry, {
    name: 'dns_failures_total',
    help: 'Queries that no upstream answered',
    label: 'reason',
    read: () => [
      ['timeout', pipeline.counters.failedTimeout],
      ['socket', pipeline.counters.failedSocket],
    ],
  })
  addCounter(registry, {
    name: 'dns_answer_addresses_total',
    help: 'Addresses in answers that teach; guarded and over_bound ones were not taken in',
    label: 'result',
    read: () => {
      const { addresses, guarded, overBound } = learner.counters
      return [
        ['learned', addresses - guarded - overBound],
        ['guarded', guarded],
        ['over_bound', overBound],
      ]
    },
  })
  addCounter(registry, {
    name: 'dns_answers_truncated_total',
    help: 'Answers shortened to fit the size that the client takes over UDP',
    read: () => responder.counters.truncated,
  })
}

/** All zero unless dns.svcb, dns.guard or dns.on-degraded says that something is taken out of answers. */
function addStripMetrics(registry: Registry, { stripping }: MetricsSources): void {
  addCounter(registry, {
    name: 'dns_answers_stripped_total',
    help: 'Answers out of which addresses were taken; failed ones could not be read and were answered as malformed',
    label: 'result',
    read: () => [
      ['stripped', stripping?.counters.stripped ?? 0],
      ['failed', stripping?.counters.failed ?? 0],
    ],
  })
  addCounter(registry, {
    name: 'dns_stripped_total',
    help: 'What was taken out of answers: addresses, address hints, unreadable SVCB and HTTPS records, signatures over these',
    label: 'part',
    read: () => [
      ['address', stripping?.taken.addresses ?? 0],
      ['hint', stripping?.taken.hints ?? 0],
      ['unreadable', stripping?.taken.unreadable ?? 0],
      ['signature', stripping?.taken.signatures ?? 0],
    ],
  })
}

/** All zero with a datapath that applies at once, but for what it refuses. */
function addHoldMetrics(registry: Registry, { pipeline, releases }: MetricsSources): void {
  addGauge(registry, {
    name: 'dns_answers_waiting',
    help: 'Answers that wait for the datapath; they count as queries in flight',
    read: () => releases.count,
  })
  addCounter(registry, {
    name: 'dns_answers_held_total',
    help: 'Answers that had to wait for the datapath, by how: overdue ones as long as they may, those over a bound not at all',
    label: 'wait',
    read: () => [
      ['begun', releases.counters.held],
      ['overdue', releases.counters.overdue],
      ['over_bound', releases.counters.overBound],
    ],
  })
  addCounter(registry, {
    name: 'dns_answers_held_out_total',
    help: 'Answers that were held out, by what the client got instead: dns.hold.on-limit',
    label: 'result',
    read: () => [
      ['servfail', pipeline.counters.heldOutServfail],
      ['drop', pipeline.counters.heldOutDropped],
      ['release', pipeline.counters.heldOutReleased],
    ],
  })
  addCounter(registry, {
    name: 'dns_answer_hold_seconds_total',
    help: 'Time that answers were held, all together',
    read: () => releases.times.totalMs / MS_PER_SECOND,
  })
  addCounter(registry, {
    name: 'dns_answer_holds_total',
    help: 'Answers by how long they were held: each counts once, under the least time that it fits',
    label: 'at_most',
    read: () => releases.times.readings(),
  })
}
