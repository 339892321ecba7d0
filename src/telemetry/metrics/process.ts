// The process itself: memory, CPU and how late the event loop is.

import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Registry } from 'prom-client'
import { addCounter, addGauge } from './build.ts'

/** The loop's lateness is sampled this often; a sample contains the wait itself. */
const RESOLUTION_MS = 10
const QUANTILES = [50, 99, 99.9, 100] as const

/** Samples from the first scrape on, because sampling alone wakes the process a hundred times a second. Returns what ends it. */
export function addProcessMetrics(registry: Registry): () => void {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  addGauge(registry, {
    name: 'process_event_loop_delay_seconds',
    help: 'How late the event loop was since the last scrape, by quantile; 1 is the worst',
    label: 'statistic',
    read: () => {
      const rows = QUANTILES.map((percent): [string, number] => {
        const late = delay.percentile(percent) / 1e9 - RESOLUTION_MS / 1e3
        return [String(percent / 100), Math.max(0, late)]
      })
      delay.enable()
      delay.reset()
      return rows
    },
  })
  addGauge(registry, {
    name: 'process_resident_memory_bytes',
    help: 'Resident memory',
    read: () => process.memoryUsage.rss(),
  })
  addGauge(registry, {
    name: 'process_heap_bytes',
    help: 'JavaScript heap: used, and array buffers outside of it',
    label: 'part',
    read: () => {
      const { heapUsed, arrayBuffers } = process.memoryUsage()
      return [
        ['used', heapUsed],
        ['array_buffers', arrayBuffers],
      ]
    },
  })
  addCounter(registry, {
    name: 'process_cpu_seconds_total',
    help: 'CPU time',
    label: 'mode',
    read: () => {
      const { user, system } = process.cpuUsage()
      return [
        ['user', user / 1e6],
        ['system', system / 1e6],
      ]
    },
  })
  addGauge(registry, {
    name: 'process_uptime_seconds',
    help: 'Time since the process was started',
    read: () => process.uptime(),
  })
  return () => delay.disable()
}
