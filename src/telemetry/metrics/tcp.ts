// TCP connections of clients.

import type { Registry } from 'prom-client'
import { addCounter, addGauge } from './build.ts'
import type { MetricsSources } from './sources.ts'

export function addTcpMetrics(registry: Registry, { listeners }: MetricsSources): void {
  const { counters } = listeners.tcp
  addGauge(registry, {
    name: 'tcp_connections',
    help: 'Connections of clients, open now',
    read: () => counters.open,
  })
  addCounter(registry, {
    name: 'tcp_connections_total',
    help: 'Connections of clients by whether they were taken; full: all were busy',
    label: 'result',
    read: () => [
      ['accepted', counters.accepted],
      ['full', counters.refusedFull],
      ['client_full', counters.refusedClientFull],
    ],
  })
  addCounter(registry, {
    name: 'tcp_connections_closed_total',
    help: 'Connections of clients that we closed, by reason',
    label: 'reason',
    read: () => [
      ['evicted', counters.evicted],
      ['idle', counters.closedIdle],
      ['incomplete_message', counters.closedIncomplete],
      ['slow_reader', counters.closedSlowReader],
    ],
  })
  addCounter(registry, {
    name: 'tcp_messages_total',
    help: 'DNS messages over TCP; dropped: the connection was gone',
    label: 'event',
    read: () => [
      ['received', counters.received],
      ['sent', counters.sent],
      ['dropped', counters.answersDropped],
    ],
  })
  addCounter(registry, {
    name: 'tcp_reads_paused_total',
    help: 'Times that a connection was not read because too many of its queries were unanswered',
    read: () => counters.readsPaused,
  })
  addCounter(registry, {
    name: 'tcp_socket_errors_total',
    help: 'Errors of connections and of accepting them',
    read: () => counters.socketErrors,
  })
}
