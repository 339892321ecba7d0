// Connects the daemon with the admin API, `status` and metrics. Every field reads one part of the daemon.

import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { newPageCounts } from '../admin/page/counts.ts'
import { Page } from '../admin/page/page.ts'
import type { AdminState, Detach } from '../admin/state.ts'
import { auditOf, nodeAuditOf, setAudit } from './audit.ts'
import { forwardingRemedy } from '../endpoints/forwarding.ts'
import type { Daemon } from './daemon.ts'
import { limitUses } from './limit-uses.ts'
import { METRICS } from './metrics.ts'
import type { MetricsSources } from './metrics-sources.ts'
import type { KeptFlows } from './open-flows.ts'
import { formatServer } from '../proxy/upstream/server-pool.ts'
import { describeInterception } from '../intercept/interception.ts'
import type { LimitUse } from '../telemetry/limits.ts'
import { Metrics } from '../telemetry/metrics.ts'
import type { PutBack } from '../telemetry/put-back.ts'
import { VERSION } from '../version.ts'

export interface DaemonAdmin {
  readonly state: AdminState
  readonly page: Page
  readonly metrics: Metrics<MetricsSources>
}

/** What a daemon with services has in addition to its parts. Each field is undefined where the daemon has no such service. */
interface AroundDaemon {
  /** Removes all enforcement and ends the process. Undefined where nothing enforces. */
  readonly detach?: Detach | undefined
  readonly keptFlows?: KeptFlows | undefined
  readonly kept?: AdminState['kept']
  readonly putBack?: PutBack
  /** Called after each audit setting at run time, except of the node, whose mode is reported. */
  readonly onAudit?: OnAudit
}

type OnAudit = (endpoints: readonly string[], on: boolean | undefined) => void

export function makeDaemonAdmin(
  daemon: Daemon,
  { detach, keptFlows, kept, putBack, onAudit }: AroundDaemon = {},
): DaemonAdmin {
  const { clock, core, policies, endpoints, transition, flows, sources, repair } = daemon
  const { adoption, interception, emptyDenies, mode, proxy } = daemon
  const limits = (): readonly LimitUse[] => limitUses(daemon, keptFlows?.files)
  const notReady = (): readonly string[] => {
    return [...daemon.notReady, ...(proxy.drain.isUnderWay ? ['it stops'] : [])]
  }
  const parts = { core, policies, endpoints, transition, emptyDenies, repair }
  const pageCounts = newPageCounts()
  const metrics = new Metrics<MetricsSources>(METRICS, () => ({
    ...parts,
    version: VERSION,
    notReady: notReady(),
    proxy,
    flows,
    adoption,
    sources,
    cluster: daemon.cluster,
    mode,
    interception,
    limits: limits(),
    keptFlows,
    state: kept,
    putBack,
    page: pageCounts,
  }))
  const state: AdminState = {
    ...parts,
    version: VERSION,
    cluster: daemon.cluster,
    configFile: existsSync(daemon.config.file) ? resolve(daemon.config.file) : undefined,
    clock,
    startedAt: clock.wall(),
    flows,
    keptFlows: keptFlows?.files === undefined ? undefined : keptFlows,
    kept,
    inheritedPolicies: () => daemon.restart.inheritedPolicies,
    restart: kept === undefined ? undefined : daemon.restart,
    releases: proxy.releases,
    limits,
    detach,
    ...sourcesOf(daemon),
    ...resourcesOf(daemon),
    ...auditsOf(daemon, onAudit),
    ask: daemon.proxy.ownQuestions.ask.bind(daemon.proxy.ownQuestions),
    asked: daemon.proxy.judge.asked,
    ...networkOf(daemon),
    notReady,
    metrics: async () => await metrics.expose(),
    someMetrics: async (wants) => await metrics.select(wants),
    ...modeOf(daemon),
  }
  return { state, metrics, page: new Page(state, pageCounts) }
}

function networkOf(
  daemon: Daemon,
): Pick<
  AdminState,
  'listeners' | 'interception' | 'isIntercepting' | 'isMissed' | 'upstreams' | 'forwardingRemedy'
> {
  return {
    listeners: () => daemon.proxy.listeners.texts,
    interception: () => describeInterception(daemon.interception),
    isIntercepting: () => daemon.interception.isInForce,
    isMissed: (name) =>
      daemon.config.listeners.every(({ mode }) => mode === 'tproxy') &&
      daemon.interception.misses(name),
    upstreams: () => upstreamStates(daemon),
    forwardingRemedy,
  }
}

function modeOf({ mode }: Daemon): Pick<AdminState, 'mode' | 'setMode'> {
  return { mode: () => mode.now, setMode: (wanted) => mode.set(wanted) }
}

function auditsOf(
  daemon: Daemon,
  onAudit?: OnAudit,
): Pick<AdminState, 'auditOf' | 'nodeAudit' | 'setAudit'> {
  return {
    auditOf: (endpoint) => auditOf(daemon, endpoint),
    nodeAudit: () => nodeAuditOf(daemon),
    setAudit: (scope, on) => {
      const result = setAudit(daemon, scope, on)
      if (result.kind === 'ok' && scope.kind !== 'node') onAudit?.(result.endpoints, on)
      return result
    },
  }
}

function sourcesOf({
  config,
  sources,
}: Daemon): Pick<
  AdminState,
  'sourceAges' | 'sourcesThen' | 'policyFiles' | 'faults' | 'sourceWarnings'
> {
  return {
    policyFiles: () => sources.policyFiles,
    sourceAges: sources.ages,
    sourcesThen: config.sources.onMaxAge,
    faults: () => sources.recordFaults,
    sourceWarnings: () => sources.warnings,
  }
}

function resourcesOf({
  sources: { apiResources },
}: Daemon): Pick<
  AdminState,
  'resources' | 'findResource' | 'resourceTag' | 'setResource' | 'removeResource'
> {
  return {
    resources: () => apiResources.listed.all(),
    findResource: (name) => apiResources.listed.find(name),
    resourceTag: (name) => {
      const { listed } = apiResources
      return name === undefined ? listed.tag : listed.tagOf(name)
    },
    setResource: (name, body) => apiResources.set(name, body),
    removeResource: (name) => apiResources.remove(name),
  }
}

function upstreamStates(daemon: Daemon): ReturnType<AdminState['upstreams']> {
  const { pool } = daemon.proxy.upstream
  return daemon.servers.map((server, i) => {
    const mean = pool.rtt.means[i]!
    return {
      address: formatServer(server),
      answered: daemon.readiness.answered(i),
      state: pool.stateOf(i),
      first: i === pool.first,
      rttMs: mean < 0 ? undefined : Math.round(mean * 1000) / 1000,
      failures: pool.failures[i]!,
    }
  })
}
