// Connects the daemon with the admin API, `status` and metrics. Wiring only: every field reads a part.

import type { AdminState } from '../admin/state.ts'
import { auditOf, nodeAuditOf, setAudit } from './audit.ts'
import type { Daemon } from './daemon.ts'
import type { KeptFlows } from './open-flows.ts'
import { formatServer } from '../proxy/upstream/server-pool.ts'
import type { PolicyFile } from '../sources/files/policy-files.ts'
import { limitUses } from '../telemetry/limits.ts'
import { describeInterception } from '../intercept/interception.ts'
import { Metrics } from '../telemetry/metrics.ts'
import type { PutBack } from '../telemetry/put-back.ts'
import { VERSION } from '../version.ts'

export interface DaemonAdmin {
  readonly state: AdminState
  readonly metrics: Metrics
}

/** `detach` takes all enforcement away and ends the process; undefined where nothing enforces. */
export function makeDaemonAdmin(
  daemon: Daemon,
  detach: (() => void) | undefined,
  keptFlows?: KeptFlows,
  kept?: AdminState['kept'],
  putBack?: PutBack,
): DaemonAdmin {
  const { clock, core, policies, endpoints, transition, flows, sources, repair } = daemon
  const { upstream, responder, judge, pipeline, learner, listeners, unknown, releases } =
    daemon.proxy
  const limits = limitsOf(daemon, keptFlows)
  const policyFiles = (): Iterable<PolicyFile> => sources.policyFiles
  const shared = { version: VERSION, core, policies, transition, policyFiles, limits, repair }
  const metrics = new Metrics({
    ...shared,
    recordFiles: () => sources.recordFiles,
    judge,
    pipeline,
    learner,
    releases,
    responder,
    stripping: daemon.proxy.stripping,
    upstream,
    adoption: daemon.adoption,
    interception: daemon.interception,
    sourceAges: sources.ages,
    fileTexts: () => ({ tooLong: sources.fileTexts?.tooLong ?? 0 }),
    unknown,
    prewarm: daemon.proxy.prewarm,
    listeners,
    endpoints,
    emptyDenies: daemon.emptyDenies,
    keptFlows,
    state: kept,
    putBack,
    mode: () => daemon.mode.now,
  })
  const state: AdminState = {
    ...shared,
    clock,
    startedAt: clock.wall(),
    flows,
    keptFlows: keptFlows?.files === undefined ? undefined : keptFlows,
    kept,
    restart: kept === undefined ? undefined : daemon.restart,
    releases,
    endpoints,
    detach,
    ...sourcesOf(daemon),
    ...resourcesOf(daemon),
    ...auditsOf(daemon),
    ask: daemon.proxy.ownQuestions.ask.bind(daemon.proxy.ownQuestions),
    ...networkOf(daemon),
    notReady: () => [...daemon.notReady, ...(daemon.proxy.drain.isUnderWay ? ['it stops'] : [])],
    metrics: async () => await metrics.expose(),
    ...modeOf(daemon),
  }
  return { state, metrics }
}

function networkOf(daemon: Daemon): Pick<AdminState, 'listeners' | 'interception' | 'upstreams'> {
  return {
    listeners: () => daemon.proxy.listeners.texts,
    interception: () => describeInterception(daemon.interception),
    upstreams: () => upstreamStates(daemon),
  }
}

function modeOf({ mode }: Daemon): Pick<AdminState, 'mode' | 'setMode'> {
  return { mode: () => mode.now, setMode: (wanted) => mode.set(wanted) }
}

function auditsOf(daemon: Daemon): Pick<AdminState, 'auditOf' | 'nodeAudit' | 'setAudit'> {
  return {
    auditOf: (endpoint) => auditOf(daemon, endpoint),
    nodeAudit: () => nodeAuditOf(daemon),
    setAudit: (scope, on) => setAudit(daemon, scope, on),
  }
}

function sourcesOf({
  config,
  sources,
  emptyDenies,
}: Daemon): Pick<
  AdminState,
  'emptyDenies' | 'sourceAges' | 'sourcesThen' | 'faults' | 'sourceWarnings'
> {
  return {
    emptyDenies,
    sourceAges: sources.ages,
    sourcesThen: config.sources.onMaxAge,
    faults: () => sources.recordFaults,
    sourceWarnings: () => sources.warnings,
  }
}

function resourcesOf({
  sources: { apiResources },
}: Daemon): Pick<AdminState, 'resources' | 'setResource' | 'removeResource'> {
  return {
    resources: () => apiResources.list(),
    setResource: (name, body) => apiResources.set(name, body),
    removeResource: (name) => apiResources.remove(name),
  }
}

function limitsOf(daemon: Daemon, keptFlows: KeptFlows | undefined): AdminState['limits'] {
  const { core, endpoints } = daemon
  const { upstream, responder, listeners } = daemon.proxy
  const bounds = daemon.config.limits
  const flowFiles = keptFlows?.files
  const { tcp } = listeners
  const { resources: control, sources } = daemon
  return () => {
    const resources = { count: control.count, refusals: sources.apiResources.refusals }
    return limitUses({ bounds, core, endpoints, resources, upstream, tcp, responder, flowFiles })
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
