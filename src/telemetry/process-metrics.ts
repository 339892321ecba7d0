// Defines the metrics of the process. They have the names that prom-client and other clients of Prometheus use, so that dashboards for
// Node.js work. prom-client's own collector is not used: it cannot be stopped, and some of its gauges end in `_total`, which promtool
// rejects.

import type { MetricTable } from './metric-table.ts'
import type { ProcessReadings } from './process-reader.ts'

const US_PER_SECOND = 1e6

export const PROCESS_METRICS: MetricTable<ProcessReadings> = {
  process_cpu_seconds_total: {
    help: 'Processor time of the process',
    read: ({ cpu }) => (cpu.user + cpu.system) / US_PER_SECOND,
  },
  process_cpu_user_seconds_total: {
    help: 'Processor time of the process outside of the kernel',
    read: ({ cpu }) => cpu.user / US_PER_SECOND,
  },
  process_cpu_system_seconds_total: {
    help: 'Processor time of the process in the kernel',
    read: ({ cpu }) => cpu.system / US_PER_SECOND,
  },
  process_start_time_seconds: {
    help: 'Start of the process, in seconds since the epoch',
    read: ({ startedAt }) => startedAt,
  },
  process_resident_memory_bytes: {
    help: 'Resident memory of the process',
    read: ({ memory }) => memory.rss,
  },
  process_virtual_memory_bytes: {
    help: 'Virtual memory of the process',
    read: ({ virtualOctets }) => virtualOctets,
  },
  process_heap_bytes: {
    help: 'Data segment of the process. nodejs_heap_size_used_bytes is the heap of JavaScript',
    read: ({ dataOctets }) => dataOctets,
  },
  process_open_fds: {
    help: 'Open descriptors of the process',
    read: ({ openDescriptors }) => openDescriptors,
  },
  process_max_fds: {
    help: 'Number of descriptors that the process can open',
    read: ({ descriptorsMax }) => descriptorsMax,
  },
  nodejs_eventloop_lag_seconds: {
    help: 'Mean delay of the event loop since the last scrape, as nodejs_eventloop_lag_mean_seconds',
    read: ({ lateness }) => lateness.mean,
  },
  nodejs_eventloop_lag_min_seconds: {
    help: 'Smallest delay of the event loop since the last scrape',
    read: ({ lateness }) => lateness.min,
  },
  nodejs_eventloop_lag_max_seconds: {
    help: 'Longest delay of the event loop since the last scrape',
    read: ({ lateness }) => lateness.max,
  },
  nodejs_eventloop_lag_mean_seconds: {
    help: 'Mean delay of the event loop since the last scrape',
    read: ({ lateness }) => lateness.mean,
  },
  nodejs_eventloop_lag_stddev_seconds: {
    help: 'Standard deviation of the delay of the event loop since the last scrape',
    read: ({ lateness }) => lateness.deviation,
  },
  nodejs_eventloop_lag_p50_seconds: {
    help: 'Delay of the event loop since the last scrape, 50th percentile',
    read: ({ lateness }) => lateness.p50,
  },
  nodejs_eventloop_lag_p90_seconds: {
    help: 'Delay of the event loop since the last scrape, 90th percentile',
    read: ({ lateness }) => lateness.p90,
  },
  nodejs_eventloop_lag_p99_seconds: {
    help: 'Delay of the event loop since the last scrape, 99th percentile',
    read: ({ lateness }) => lateness.p99,
  },
  nodejs_gc_duration_seconds: {
    help: 'Time of garbage collections since the first scrape, by kind',
    label: 'kind',
    times: ({ collections }) => collections,
  },
  nodejs_heap_size_total_bytes: {
    help: 'Size of the heap of JavaScript',
    read: ({ memory }) => memory.heapTotal,
  },
  nodejs_heap_size_used_bytes: {
    help: 'Used part of the heap of JavaScript',
    read: ({ memory }) => memory.heapUsed,
  },
  nodejs_external_memory_bytes: {
    help: 'Memory of objects of JavaScript outside of its heap, such as array buffers',
    read: ({ memory }) => memory.external,
  },
  nodejs_array_buffers_bytes: {
    help: 'Memory of array buffers. It is part of nodejs_external_memory_bytes',
    read: ({ memory }) => memory.arrayBuffers,
  },
  nodejs_heap_space_size_total_bytes: {
    help: 'Size of each space of the heap',
    label: 'space',
    read: ({ heapSpaces }) => heapSpaces.map((each) => [spaceOf(each), each.space_size]),
  },
  nodejs_heap_space_size_used_bytes: {
    help: 'Used part of each space of the heap',
    label: 'space',
    read: ({ heapSpaces }) => heapSpaces.map((each) => [spaceOf(each), each.space_used_size]),
  },
  nodejs_heap_space_size_available_bytes: {
    help: 'Free part of each space of the heap',
    label: 'space',
    read: ({ heapSpaces }) => heapSpaces.map((each) => [spaceOf(each), each.space_available_size]),
  },
  nodejs_active_resources: {
    help: 'Resources that keep the event loop alive, by type',
    label: 'type',
    read: ({ resources }) => countEach(resources),
  },
  nodejs_version_info: {
    help: 'Always 1. The label is the version of Node.js',
    label: 'version',
    read: ({ nodeVersion }) => ({ [nodeVersion]: 1 }),
  },
}

function spaceOf({ space_name }: { readonly space_name: string }): string {
  return space_name.replace(/_space$/, '')
}

function countEach(words: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1)
  return counts
}
