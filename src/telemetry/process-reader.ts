// Reads what the metrics of the process show: processor time, memory, descriptors, garbage collections, lateness of the event loop.

import { readFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { constants, monitorEventLoopDelay, PerformanceObserver } from 'node:perf_hooks'
import { getHeapSpaceStatistics, type HeapSpaceInfo } from 'node:v8'
import { systemClock } from '../core/clock.ts'
import { Histogram } from '../core/tables/histogram.ts'

/** The interval between samples, in milliseconds. A sample contains the interval, so the interval is subtracted. */
const RESOLUTION_MS = 10
const NS_PER_SECOND = 1e9
/** Upper bounds for garbage collections, in milliseconds. prom-client uses the same bounds by default. */
const GC_BOUNDS_MS = [1, 10, 100, 1000, 2000, 5000]

/** How late the event loop was since the last reading, in seconds. */
export interface Lateness {
  readonly min: number
  readonly max: number
  readonly mean: number
  readonly deviation: number
  readonly p50: number
  readonly p90: number
  readonly p99: number
}

export interface ProcessReadings {
  /** Microseconds. */
  readonly cpu: NodeJS.CpuUsage
  /** Octets. */
  readonly memory: NodeJS.MemoryUsage
  /** Octets; 0 if the kernel does not report them. */
  readonly virtualOctets: number
  readonly dataOctets: number
  /** Open descriptors, and how many the process can open; undefined if the kernel does not report them. */
  readonly openDescriptors: number | undefined
  readonly descriptorsMax: number | undefined
  /** Start of the process, in seconds since the epoch. */
  readonly startedAt: number
  readonly lateness: Lateness
  /** Garbage collections in milliseconds, by kind. */
  readonly collections: ReadonlyMap<string, Histogram>
  readonly heapSpaces: readonly HeapSpaceInfo[]
  /** The kinds of resources that keep the event loop alive, one for each resource. */
  readonly resources: readonly string[]
  readonly nodeVersion: string
}

export class ProcessReader {
  readonly #loop = new EventLoopDelay()
  readonly #collections = new Collections()
  readonly #startedAt = systemClock.wall() / 1000 - process.uptime()

  /** Sampling of the event loop and of garbage collections begins with the first call. */
  async read(): Promise<ProcessReadings> {
    const openDescriptors = await readdir('/proc/self/fd').then(
      (names) => names.length,
      () => undefined,
    )
    const status = textOf('/proc/self/status')
    const limit = Number(/^Max open files\s+(\d+)/m.exec(textOf('/proc/self/limits'))?.[1])
    return {
      cpu: process.cpuUsage(),
      memory: process.memoryUsage(),
      virtualOctets: octetsOf('VmSize', status),
      dataOctets: octetsOf('VmData', status),
      openDescriptors,
      descriptorsMax: Number.isNaN(limit) ? undefined : limit,
      startedAt: this.#startedAt,
      lateness: this.#loop.read(),
      collections: this.#collections.read(),
      heapSpaces: getHeapSpaceStatistics(),
      resources: process.getActiveResourcesInfo(),
      nodeVersion: process.version,
    }
  }

  stop(): void {
    this.#loop.stop()
    this.#collections.stop()
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/** Returns a line of /proc/self/status in octets. The kernel writes `VmSize:  123 kB`. */
function octetsOf(name: string, status: string): number {
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0) * 1024
}

/** Measures how late the event loop is. Sampling wakes the process a hundred times a second. */
class EventLoopDelay {
  readonly #delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })

  /** Returns the lateness since the last call. All numbers are 0 in the first call. */
  read(): Lateness {
    const delay = this.#delay
    const isEmpty = delay.max === 0
    const late = (nanoseconds: number): number => {
      return isEmpty ? 0 : Math.max(0, nanoseconds / NS_PER_SECOND - RESOLUTION_MS / 1000)
    }
    const lateness = {
      min: late(delay.min),
      max: late(delay.max),
      mean: late(delay.mean),
      deviation: isEmpty ? 0 : delay.stddev / NS_PER_SECOND,
      p50: late(delay.percentile(50)),
      p90: late(delay.percentile(90)),
      p99: late(delay.percentile(99)),
    }
    delay.enable()
    delay.reset()
    return lateness
  }

  stop(): void {
    this.#delay.disable()
  }
}

/** Counts garbage collections by kind. */
class Collections {
  readonly #byKind = new Map(
    ['major', 'minor', 'incremental', 'weakcb'].map((kind) => [kind, new Histogram(GC_BOUNDS_MS)]),
  )
  readonly #observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) this.#byKind.get(kindOf(entry))?.add(entry.duration)
  })
  #isObserving = false

  read(): ReadonlyMap<string, Histogram> {
    if (!this.#isObserving) this.#observer.observe({ entryTypes: ['gc'] })
    this.#isObserving = true
    return this.#byKind
  }

  stop(): void {
    this.#observer.disconnect()
  }
}

/** Returns the kind of a garbage collection. `entry` has it in `detail.kind` (perf_hooks of Node.js). */
function kindOf(entry: object): string {
  const detail = 'detail' in entry ? entry.detail : undefined
  const kind = typeof detail === 'object' && detail !== null && 'kind' in detail ? detail.kind : 0
  switch (kind) {
    case constants.NODE_PERFORMANCE_GC_MAJOR:
      return 'major'
    case constants.NODE_PERFORMANCE_GC_MINOR:
      return 'minor'
    case constants.NODE_PERFORMANCE_GC_INCREMENTAL:
      return 'incremental'
    default:
      return 'weakcb'
  }
}
