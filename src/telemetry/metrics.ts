// All metrics in one registry, which is read only at a scrape. Each area has a file in metrics/.

import { Registry } from 'prom-client'
import { addCounter, addGauge } from './metrics/build.ts'
import { addDatapathMetrics } from './metrics/datapath.ts'
import { addDnsMetrics } from './metrics/dns.ts'
import { addFlowMetrics } from './metrics/flows.ts'
import { addKnowledgeMetrics } from './metrics/knowledge.ts'
import { addLimitMetrics } from './metrics/limits.ts'
import { addPolicyMetrics } from './metrics/policy.ts'
import { addProcessMetrics } from './metrics/process.ts'
import type { MetricsSources } from './metrics/sources.ts'
import { addStateMetrics } from './metrics/state.ts'
import { addTcpMetrics } from './metrics/tcp.ts'
import { addUpstreamMetrics } from './metrics/upstream.ts'

export class Metrics {
  readonly #registry = new Registry()
  readonly #stop: () => void

  constructor(sources: MetricsSources) {
    addDnsMetrics(this.#registry, sources)
    addUpstreamMetrics(this.#registry, sources)
    addTcpMetrics(this.#registry, sources)
    addKnowledgeMetrics(this.#registry, sources)
    addPolicyMetrics(this.#registry, sources)
    addDatapathMetrics(this.#registry, sources)
    addLimitMetrics(this.#registry, sources)
    addFlowMetrics(this.#registry, sources)
    const { state, putBack } = sources
    if (state !== undefined) addStateMetrics(this.#registry, { ...sources, state })
    if (putBack !== undefined) {
      addCounter(this.#registry, {
        name: 'own_files_put_back_total',
        help: 'Sockets and files of the daemon that somebody removed, and that were made anew',
        label: 'file',
        read: () => Object.entries(putBack.counts),
      })
    }
    this.#stop = addProcessMetrics(this.#registry)
    addGauge(this.#registry, {
      name: 'build_info',
      help: 'Always 1; the label is the version',
      label: 'version',
      read: () => [[sources.version, 1]],
    })
  }

  /** Prometheus' text format, version 0.0.4. */
  async expose(): Promise<string> {
    return await this.#registry.metrics()
  }

  stop(): void {
    this.#stop()
    this.#registry.clear()
  }
}

/** The media type of `expose`. */
export const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8'
