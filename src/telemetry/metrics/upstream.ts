// Towards the servers: what was sent, what came back, what did not belong to a question of ours.

import type { Registry } from 'prom-client'
import { addCounter, addGauge } from './build.ts'
import { sumOf, type MetricsSources } from './sources.ts'

export function addUpstreamMetrics(registry: Registry, { upstream }: MetricsSources): void {
  const { counters, attempts, pool } = upstream
  addCounter(registry, {
    name: 'upstream_queries_sent_total',
    help: 'Queries sent to servers, all attempts and repetitions',
    label: 'transport',
    read: () => [
      ['udp', attempts.counters.sentUdp],
      ['tcp', attempts.counters.sentTcp],
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
    help: 'Attempts after the first, by cause; unsendable ones found no socket, id or route',
    label: 'cause',
    read: () => [
      ['retry', attempts.counters.retries],
      ['mismatch', attempts.counters.mismatchRepeats],
      ['unsendable', attempts.counters.unsendable],
    ],
  })
  addCounter(registry, {
    name: 'upstream_messages_dropped_total',
    help: 'Messages from servers that answer no question of ours: wrong id or too late, or another question',
    label: 'reason',
    read: () => [
      ['unexpected', counters.unexpected],
      ['mismatched', counters.mismatched],
    ],
  })
  addGauge(registry, {
    name: 'upstream_queries_in_flight',
    help: 'Queries that wait for a server now',
    read: () => upstream.inFlight.count,
  })
  addGauge(registry, {
    name: 'upstream_server_failures',
    help: 'Attempts at each configured server since its last answer',
    label: 'server',
    read: () =>
      pool.servers.map(({ address, port }, i) => [`${address} ${port}`, pool.failures[i]!]),
  })
  addCounter(registry, {
    name: 'upstream_failovers_total',
    help: 'Times that another server became the first to be asked',
    read: () => pool.counters.failovers,
  })
  addSocketMetrics(registry, upstream)
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
      ['tcp_opened', sumOf(tcp, 'opened')],
      ['tcp_fault', sumOf(tcp, 'faults')],
      ['tcp_closed_idle', sumOf(tcp, 'closedIdle')],
      ['tcp_send_dropped', sumOf(tcp, 'sendsDropped')],
    ],
  })
}
