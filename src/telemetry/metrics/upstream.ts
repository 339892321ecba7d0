// Towards the servers: what was sent, what came back, what did not belong to a question of ours.

import type { Registry } from 'prom-client'
import { addCounter, addGauge } from './build.ts'
import { sumOf, type MetricsSources } from './sources.ts'

export function addUpstreamMetrics(registry: Registry, { upstream }: MetricsSources): void {
  const { counters, attempts, waits } = upstream
  addCounter(registry, {
    name: 'upstream_queries_sent_total',
    help: 'Queries sent to servers, all attempts and repetitions',
    label: 'transport',
    read: () => [
      ['udp', waits.counters.sentUdp],
      ['tcp', waits.counters.sentTcp],
    ],
  })
  addCounter(registry, {
    name: 'upstream_queries_total',
    help: 'Forwarded queries by how they ended',
    label: 'end',
    read: () => [
      ['answered', counters.answers],
      ['timeout', counters.timeouts],
      ['socket_failure', counters.socketFailures],
    ],
  })
  addCounter(registry, {
    name: 'upstream_attempts_total',
    help: 'Attempts after the first, by cause; denied ones passed a bound, unsendable ones found no socket, id or route',
    label: 'cause',
    read: () => [
      ['retry', attempts.counters.retries],
      ['retry_denied', attempts.counters.retriesDenied],
      ['mismatch', attempts.counters.mismatchRepeats],
      ['mismatch_denied', attempts.counters.repeatsDenied],
      ['unsendable', waits.counters.unsendable],
    ],
  })
  addCounter(registry, {
    name: 'upstream_coalesced_total',
    help: 'Queries that got a copy of the answer to the same query of the same client',
    read: () => counters.coalesced,
  })
  addCounter(registry, {
    name: 'upstream_messages_dropped_total',
    help: 'Messages from servers that answer no question of ours: wrong id or too late, or another question',
    label: 'reason',
    read: () => [
      ['unexpected', counters.unexpected],
      ['mismatched', counters.mismatched],
      ['late', counters.late],
    ],
  })
  addGauge(registry, {
    name: 'upstream_queries_in_flight',
    help: 'Queries that wait for a server now',
    read: () => upstream.inFlight.count,
  })
  addServerMetrics(registry, upstream)
  addAskedMetrics(registry, upstream)
  addSocketMetrics(registry, upstream)
}

/** Readings by server, labelled `9.9.9.9:53`, `[2620:fe::fe]:53`. */
function readerBy(servers: MetricsSources['upstream']['pool']['servers']) {
  const labels = servers.map(({ address, port }) =>
    address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`,
  )
  return (valueOf: (server: number) => number): [string, number][] =>
    labels.map((server, i) => [server, valueOf(i)])
}

function addServerMetrics(registry: Registry, upstream: MetricsSources['upstream']): void {
  const { pool } = upstream
  const byServer = readerBy(pool.servers)
  const label = 'server'
  addGauge(registry, {
    name: 'upstream_server_up',
    help: '1 while a configured server is up, 0 while it is down and only probed',
    label,
    read: () => byServer((i) => (pool.isDown(i) ? 0 : 1)),
  })
  addGauge(registry, {
    name: 'upstream_server_first',
    help: '1 for the server that new queries ask first',
    label,
    read: () => byServer((i) => (i === pool.first ? 1 : 0)),
  })
  addGauge(registry, {
    name: 'upstream_server_rtt_seconds',
    help: 'Smoothed time to an answer; 0 before the first',
    label,
    read: () => byServer((i) => Math.max(0, pool.rtt.means[i]!) / 1000),
  })
  addGauge(registry, {
    name: 'upstream_server_failures',
    help: 'Attempts at each configured server since its last answer',
    label,
    read: () => byServer((i) => pool.failures[i]!),
  })
  addServerCounts(registry, upstream)
}

function addServerCounts(registry: Registry, upstream: MetricsSources['upstream']): void {
  const { pool, probes } = upstream
  const byServer = readerBy(pool.servers)
  const label = 'server'
  addCounter(registry, {
    name: 'upstream_server_answers_total',
    help: 'Answers of each configured server, late ones and those to probes included',
    label,
    read: () => byServer((i) => pool.answers[i]!),
  })
  addCounter(registry, {
    name: 'upstream_server_failed_attempts_total',
    help: 'Attempts at each configured server that were overdue or met an error',
    label,
    read: () => byServer((i) => pool.failed[i]!),
  })
  addCounter(registry, {
    name: 'upstream_server_probes_total',
    help: 'Probes sent to each configured server: one at the start, others only while it is down',
    label,
    read: () => byServer((i) => probes.sent[i]!),
  })
  addCounter(registry, {
    name: 'upstream_server_changes_total',
    help: 'Servers that went down, came up, or took over as the first to be asked',
    label: 'change',
    read: () => [
      ['down', pool.counters.downs],
      ['up', pool.counters.ups],
      ['failover', pool.counters.failovers],
    ],
  })
}

/** Servers that clients chose, with upstreams.original-destination. */
function addAskedMetrics(registry: Registry, { links }: MetricsSources['upstream']): void {
  const { counters } = links.asked
  addGauge(registry, {
    name: 'upstream_asked_servers',
    help: 'Servers that clients asked themselves, with links kept towards them',
    read: () => links.asked.open,
  })
  addCounter(registry, {
    name: 'upstream_asked_servers_total',
    help: 'Links towards servers that clients asked; refused ones would have been too many',
    label: 'event',
    read: () => [
      ['opened', counters.opened],
      ['closed', counters.closed],
      ['refused', counters.refused],
    ],
  })
}

function addSocketMetrics(registry: Registry, { udp, tcp }: MetricsSources['upstream']): void {
  addGauge(registry, {
    name: 'upstream_sockets',
    help: 'Sockets towards servers, open now',
    label: 'transport',
    read: () => [
      ['udp', sumOf(udp, 'open')],
      ['tcp', sumOf(tcp, 'open')],
    ],
  })
  addCounter(registry, {
    name: 'upstream_socket_events_total',
    help: 'What happened to sockets towards servers',
    label: 'event',
    read: () => [
      ['udp_opened', sumOf(udp, 'opened')],
      ['udp_open_failed', sumOf(udp, 'openFailures')],
      ['udp_port_taken', sumOf(udp, 'portsTaken')],
      ['udp_error', sumOf(udp, 'socketErrors')],
      ['udp_send_dropped', sumOf(udp, 'sendsDropped')],
      ['udp_kernel_drop', sumOf(udp, 'kernelDrops')],
      ['tcp_opened', sumOf(tcp, 'opened')],
      ['tcp_fault', sumOf(tcp, 'faults')],
      ['tcp_closed_idle', sumOf(tcp, 'closedIdle')],
      ['tcp_send_dropped', sumOf(tcp, 'sendsDropped')],
    ],
  })
}
