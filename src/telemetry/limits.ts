// The bounds of docs/spec/semantics 6 as they stand now: use, bound, and how often each was hit. One list, read by
// metrics at a scrape and by `status`, so that both say the same. Costs a few reads; nothing is counted here.

import type { CoreState } from '../enforcement/core-state.ts'
import type { LimitKey, Limits } from '../core/limits.ts'
import type { EndpointRegistry } from '../endpoints/registry.ts'

/** One bound. `use` is undefined where only hits are known (bounds per client). */
export interface LimitUse {
  /** Key of the config, e.g. `pairs`, `queries-in-flight`. */
  readonly limit: string
  readonly use: number | undefined
  readonly bound: number
  /** Times that the one too many was refused, evicted or shortened, since the start. */
  readonly hits: number
}

/** From here on a bound is worth a line in `status`, and for ever once it was hit. */
export const NEAR_BOUND = 0.8

export function isWorthALine({ use, bound, hits }: LimitUse): boolean {
  return hits > 0 || (use !== undefined && use >= bound * NEAR_BOUND)
}

/** Where a bound is set, as the config has it. */
export function configKeyOf({ limit }: LimitUse): string {
  return limit === FLOW_FILES ? limit : `limits.${limit}`
}

const FLOW_FILES = 'flows.max-size'

/** Where use and hits are read; the parts of the daemon fit. */
export interface LimitSources {
  readonly bounds: Limits
  readonly core: CoreState
  readonly endpoints: { readonly registry: EndpointRegistry }
  /** In force, and how often the API was refused one; of files a refusal is a fault. */
  readonly resources: { readonly count: number; readonly refusals: number }
  readonly upstream: {
    readonly inFlight: { readonly count: number }
    readonly counters: Readonly<Record<'refusedFull' | 'refusedClientFull', number>>
  }
  readonly tcp: {
    readonly counters: Readonly<
      Record<
        | 'open'
        | 'refusedFull'
        | 'refusedClientFull'
        | 'evicted'
        | 'readsPaused'
        | 'closedIdle'
        | 'closedIncomplete',
        number
      >
    >
  }
  readonly responder: { readonly counters: Readonly<Record<'truncated', number>> }
  /** Files of kept flows; undefined where none are kept. */
  readonly flowFiles?:
    | {
        readonly octets: number
        readonly maxOctets: number
        readonly counters: Readonly<Record<'removedBySize', number>>
      }
    | undefined
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

/** Every bound that is enforced, in the order of docs/spec/semantics 6. */
export function limitUses(sources: LimitSources): readonly LimitUse[] {
  const { bounds, core, endpoints, upstream, tcp, responder, resources, flowFiles } = sources
  const { names, allocator, selectors, policyMaps, datapath } = core
  const { registry } = endpoints
  const row = (limit: LimitKey, use: number | undefined, hits: number): LimitUse => {
    return { limit, use, bound: bounds[limit], hits }
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
    row('resources', resources.count, resources.refusals),
    row('policy-entries', entries, policyMaps.overflows),
    row('connections-per-endpoint', open?.most, hits('connections_over_limit', 'flows_over_share')),
    row('connections', open?.all, hits('connections_table_full', 'flows_table_full')),
    row('queries-in-flight', upstream.inFlight.count, upstream.counters.refusedFull),
    row('queries-in-flight-per-client', undefined, upstream.counters.refusedClientFull),
    row('tcp-connections', tcp.counters.open, tcp.counters.refusedFull + tcp.counters.evicted),
    row('tcp-connections-per-client', undefined, tcp.counters.refusedClientFull),
    row('queries-per-tcp-connection', undefined, tcp.counters.readsPaused),
    row('tcp-idle-timeout', undefined, tcp.counters.closedIdle),
    row('tcp-message-timeout', undefined, tcp.counters.closedIncomplete),
    row('udp-message', undefined, responder.counters.truncated),
    ...(flowFiles === undefined ? [] : [flowFilesUse(flowFiles)]),
  ]
}

/** The one bound that is no key of `limits`; a hit is a file that went. */
function flowFilesUse(files: NonNullable<LimitSources['flowFiles']>): LimitUse {
  const { octets, maxOctets, counters } = files
  return { limit: FLOW_FILES, use: octets, bound: maxOctets, hits: counters.removedBySize }
}
