// Shows the state of the daemon in one object, for `status`.

import { qualifiedName } from '../../enforcement/rule-origins.ts'
import { isWorthALine } from '../../telemetry/limits.ts'
import type { StatusShape } from '../document/shapes.ts'
import type { AdminState } from '../state.ts'
import { auditedView } from './audited.ts'
import { isEnforcing, unfencedReason } from './endpoints.ts'
import { idlePolicies } from './policies.ts'
import { formatTime, someOf } from './rows.ts'
import { policiesOfUnknownPods, unknownPodWarnings } from './unknown-pods.ts'
import { unknownPortWarnings } from './unknown-ports.ts'

export function statusView(state: AdminState): StatusShape {
  const { core, policies, transition } = state
  const notReady = state.notReady()
  const faults = faultsOf(state)
  const { refused } = core.committer
  const isOurs = state.kept?.use.taken === undefined
  const healthy = notReady.length === 0 && faults.length === 0 && refused === 0 && isOurs
  return {
    health: healthy ? 'ok' : 'degraded',
    ready: notReady.length === 0,
    notReady,
    version: state.version,
    config: state.configFile ?? null,
    started: formatTime(state.startedAt),
    pid: process.pid,
    mode: state.mode(),
    datapath: {
      kind: core.datapath.kind,
      revision: core.committer.revision,
      desiredRevision: core.committer.desired,
      refused,
      stalled: core.committer.watch.isStalled,
      held: state.releases.count,
      repaired: state.repair?.counters.repaired ?? 0,
    },
    policyRevision: policies.revision,
    realizedRevision: transition.realizedRevision,
    endpoints: countEndpoints(state),
    policies: policies.policies.length,
    listeners: state.listeners(),
    interception: state.interception() ?? null,
    intercepting: state.isIntercepting() ?? null,
    upstreams: state.upstreams().map(({ answered, rttMs, ...rest }) => ({
      ...rest,
      answered: answered ?? null,
      rttMs: rttMs ?? null,
    })),
    kept: keptOf(state),
    restart: state.restart?.progress ?? null,
    identityFallbacks: core.allocator.fallbacks,
    kubernetes: kubernetesOf(state),
    audited: auditedView(state),
    limits: state
      .limits()
      .filter(isWorthALine)
      .map(({ limit, use = null, bound, hits }) => ({ limit, use, bound, hits })),
    faults,
    warnings: warningsOf(state),
  }
}

const NO_EVENTS = { state: 'off', writer: '', reason: '' } as const

function kubernetesOf(state: AdminState): StatusShape['kubernetes'] {
  const { cluster } = state
  if (cluster === undefined) return null
  const { server, version, collections, leftOut, unknownPods: unknown } = cluster
  const unknownPods = { reason: unknown.reason, policies: policiesOfUnknownPods(state) }
  const events = cluster.events?.status ?? NO_EVENTS
  return { server, version, collections, leftOut: Object.fromEntries(leftOut), unknownPods, events }
}

/** The present faults of all files. For a file with faults, the last good version is in force. */
export function faultsOf(state: Pick<AdminState, 'policyFiles' | 'faults'>): StatusShape['faults'] {
  const policies = [...state.policyFiles()].flatMap((file) => file.faults)
  const all = new Set([...policies, ...state.faults()])
  return [...all].map(({ position, message }) => ({ ...position, message }))
}

const NOT_KEPT =
  'the state folder cannot be written, for example because its disk is full (the log says why): a restart forgets what was learned and set since'

const CLOSED =
  ': every name that is asked is refused meanwhile, what is known stays (sources.then: deny)'

/** Warns of states that follow from the configuration and can still surprise, such as an endpoint that is not enforced. */
function warningsOf(state: AdminState): readonly string[] {
  const half = state.policies.policies
    .filter(({ halfEnforced }) => halfEnforced === true)
    .map(
      (policy) => `policy ${qualifiedName(policy)} is half enforced: its ingress half is ignored`,
    )
  const none = idlePolicies(state).map((name) => `policy ${name} selects no endpoint`)
  const lost = state.sourceWarnings?.() ?? []
  const { isFailing = false, taken } = state.kept?.use ?? {}
  const kept = isFailing ? [taken ?? NOT_KEPT] : []
  const damage = (state.kept?.use.damage ?? []).map(
    (fault) => `kept over the restart, but ${fault}`,
  )
  const silent = state.sourceAges?.silent ?? []
  const then = state.sourcesThen === 'deny' ? CLOSED : ''
  const old = silent.map((kind) => `${kind} were not heard for longer than sources.max-age${then}`)
  const denies = state.emptyDenies.texts
  const idle = [
    ...half,
    ...none,
    ...denies,
    ...lost,
    ...(state.cluster?.warnings ?? []),
    ...unknownPodWarnings(state),
    ...unknownPortWarnings(state),
    ...openWarning(state),
    ...missedWarning(state),
    ...stuckWarning(state),
    ...kept,
    ...damage,
    ...old,
  ]
  const mode = state.mode()
  if (mode === 'bypass') return [...idle, 'mode is bypass: nothing is judged']
  const open: string[] = []
  for (const endpoint of state.endpoints.registry) {
    const meant = endpoint.hook.kind !== 'none' && state.core.datapath.kind !== 'memory'
    const reason = meant ? unfencedReason(state, endpoint) : undefined
    if (reason !== undefined) open.push(`endpoint ${endpoint.name} is not enforced: ${reason}`)
  }
  const budget = budgetWarnings(state)
  const audit = mode === 'audit' ? ['mode is audit: nothing is denied'] : []
  return [...idle, ...audit, ...open, ...budget]
}

/** Warns of endpoints whose interface no listener names. Their queries go to their servers, and namegate learns no address from them. */
function missedWarning(state: AdminState): readonly string[] {
  const missed = [...state.endpoints.registry].flatMap(({ name, hook }) =>
    hook.kind === 'interface' && state.isMissed(hook.name) ? [`${name} (${hook.name})`] : [],
  )
  if (missed.length === 0) return []
  return [
    `no listener intercepts the DNS of ${someOf(missed)}: add the interface to listeners[].interfaces`,
  ]
}

/** Warns of endpoints that no policy selects and that may therefore do everything, for example after their last policy was deleted. */
function openWarning({ endpoints, policies }: AdminState): readonly string[] {
  const open = [...endpoints.registry].filter((endpoint) => policies.isLeftOpen(endpoint))
  if (open.length === 0) return []
  const [whom, verb] = open.length === 1 ? ['endpoint', 'it is'] : ['endpoints', 'they are']
  const names = someOf(open.map(({ name }) => name))
  return [`default-egress is allow, and no policy selects ${whom} ${names}: ${verb} open`]
}

/** Warns of endpoints whose packets this host should forward and does not, for example after another program changed the setting. */
function stuckWarning(state: AdminState): readonly string[] {
  const all = [...state.endpoints.registry]
  const stuck = all.filter((endpoint) => state.forwardingRemedy(endpoint) !== undefined)
  const [first] = stuck
  if (first === undefined) return []
  const whom = stuck.length === 1 ? 'endpoint' : 'endpoints'
  const names = someOf(stuck.map(({ name }) => name))
  return [
    `this host does not forward IPv4 packets, so allowed connections of ${whom} ${names} hang: ${state.forwardingRemedy(first)}`,
  ]
}

function keptOf({ kept }: AdminState): StatusShape['kept'] {
  if (kept === undefined) return null
  const { generation, imageOctets, journalOctets, age, faults } = kept.use
  const count = Object.values(faults).reduce((sum, each) => sum + each, 0)
  return { generation, image: imageOctets, journal: journalOctets, age, faults: count }
}

/** Warns of endpoints whose addresses have fewer labels because identities for them are used up (docs/spec/semantics 3). */
function budgetWarnings({ core, endpoints }: AdminState): readonly string[] {
  return [...core.ipcache.degraded.byEndpoint()].map(([id, count]) => {
    const name = endpoints.registry.byNumber(id)?.name
    const whose = name === undefined ? '' : `endpoint ${name}: `
    return `${whose}${count} addresses have fewer labels than their names: identities of answers are used up`
  })
}

function countEndpoints(state: AdminState): StatusShape['endpoints'] {
  let enforcing = 0
  for (const endpoint of state.endpoints.registry) {
    if (isEnforcing(state, endpoint)) enforcing++
  }
  return { known: state.endpoints.registry.size, enforcing }
}
