// Lists every bound with its present use and hits, in the order of docs/spec/semantics 6. To show the use of a bound, add a row here.
// Reading the list costs 1 ms with a million learned names, because the counts are kept elsewhere.

import type { Config } from '../config/config.ts'
import type { LimitKey } from '../core/limits.ts'
import type { ResourceControl } from '../enforcement/resource-control.ts'
import type { EndpointRegistry } from '../endpoints/registry.ts'
import type { FlowFiles } from '../flows/flow-files.ts'
import { FLOW_FILES, type LimitUse } from '../telemetry/limits.ts'
import type { MetricsSources } from './metrics-sources.ts'

/** The parts that know the use of each bound. A Daemon has them all. */
export interface LimitSources extends Pick<MetricsSources, 'core'> {
  readonly config: Pick<Config, 'limits'>
  readonly endpoints: { readonly registry: EndpointRegistry }
  readonly resources: Pick<ResourceControl, 'count'>
  /** Undefined without a cluster. */
  readonly cluster?:
    | { readonly objects: { readonly peers: Readonly<Record<'count' | 'refusals', number>> } }
    | undefined
  /** How often the admin API refused a resource at the bound. Too many resources in files are a fault, not a hit. */
  readonly sources: { readonly apiResources: { readonly refusals: number } }
  readonly proxy: Pick<MetricsSources['proxy'], 'listeners' | 'responder' | 'upstream'>
}

const NAME_BOUNDS = [
  'addresses-per-name',
  'names-per-wildcard',
  'wildcard-names',
  'wildcard-names-per-endpoint',
  'names-per-address',
  'pairs-per-endpoint',
  'pairs',
] as const

/** Every bound that is enforced. `flowFiles` is undefined where no flows are kept on disk. */
export function limitUses(daemon: LimitSources, flowFiles?: FlowFiles): readonly LimitUse[] {
  const { config, core, endpoints, resources, sources, proxy } = daemon
  const { names, allocator, selectors, policyMaps, datapath } = core
  const { upstream, responder, listeners } = proxy
  const tcp = listeners.tcp.counters
  const { registry } = endpoints
  const peers = daemon.cluster?.objects.peers
  const row = (limit: LimitKey, use: number | undefined, hits: number): LimitUse => {
    return { limit, use, bound: config.limits[limit], hits }
  }
  const inUse = names.eviction.uses()
  const open = datapath.peers.use()
  const counters = datapath.reports.counters()
  const hits = (...names: readonly string[]): number => {
    return names.reduce((sum, name) => sum + (counters[name] ?? 0), 0)
  }
  let entries = 0
  for (const { id } of registry) entries = Math.max(entries, policyMaps.sizeOf(id))
  return [
    ...NAME_BOUNDS.map((bound) => row(bound, inUse[bound], names.eviction.hits[bound])),
    row('dynamic-identities', allocator.dynamicInUse, allocator.fallbacks),
    row('dynamic-identities-per-endpoint', allocator.budget.most, allocator.fallbacks),
    row('static-identities', allocator.inUse - allocator.dynamicInUse, 0),
    row('selectors', selectors.size, 0),
    row('endpoints', registry.size, 0),
    row('resources', resources.count, sources.apiResources.refusals),
    row('peers', peers?.count ?? 0, peers?.refusals ?? 0),
    row('policy-entries', entries, policyMaps.overflows),
    row('connections-per-endpoint', open?.most, hits('connections_over_limit', 'flows_over_share')),
    row('connections', open?.all, hits('connections_table_full', 'flows_table_full')),
    row('queries-in-flight', upstream.inFlight.count, upstream.counters.refusedFull),
    row('queries-in-flight-per-client', undefined, upstream.counters.refusedClientFull),
    row('tcp-connections', tcp.open, tcp.refusedFull + tcp.evicted),
    row('tcp-connections-per-client', undefined, tcp.refusedClientFull),
    row('queries-per-tcp-connection', undefined, tcp.readsPaused),
    row('tcp-idle-timeout', undefined, tcp.closedIdle),
    row('tcp-message-timeout', undefined, tcp.closedIncomplete),
    row('udp-message', undefined, responder.counters.truncated),
    ...(flowFiles === undefined ? [] : [flowFilesUse(flowFiles)]),
  ]
}

/** A hit is a file of flows that was removed because of the bound. */
function flowFilesUse({ octets, maxOctets, counters }: FlowFiles): LimitUse {
  return { limit: FLOW_FILES, use: octets, bound: maxOctets, hits: counters.removedBySize }
}
