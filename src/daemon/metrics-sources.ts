// Lists what the table of metrics reads of the daemon: the counters of the daemon's parts, with the types of these parts.

import type { PageCounts } from '../admin/page/counts.ts'
import type { AdminState } from '../admin/state.ts'
import type { AdoptionControl } from '../enforcement/adoption-control.ts'
import type { EndpointRegistry } from '../endpoints/registry.ts'
import type { CoreState } from '../enforcement/core-state.ts'
import type { EmptyDenies } from '../enforcement/empty-denies.ts'
import type { PolicyControl } from '../enforcement/policy-control.ts'
import type { Transition } from '../enforcement/transition.ts'
import type { FlowRing } from '../flows/record/flow-ring.ts'
import type { Interception } from '../intercept/interception.ts'
import type { Kubernetes } from '../kubernetes/kubernetes.ts'
import type { DnsProxy } from '../proxy/dns-proxy.ts'
import type { Upstream } from '../proxy/upstream/upstream.ts'
import type { SourceAges } from '../sources/source-ages.ts'
import type { LimitUse } from '../telemetry/limits.ts'
import type { PutBack } from '../telemetry/put-back.ts'
import type { DaemonMode } from './mode.ts'
import type { KeptFlows } from './open-flows.ts'
import type { Repairs } from './parts.ts'

type Counted<Part> = Part extends { readonly counters: infer Counters }
  ? { readonly counters: Readonly<Counters> }
  : never

/** The parts of the daemon that the table reads. */
export interface MetricsSources {
  readonly version: string
  /** Why the daemon is not ready. Empty when it is ready. */
  readonly notReady: readonly string[]
  readonly core: CoreState
  readonly proxy: ProxySources
  readonly flows: Pick<FlowRing, 'verdicts'>
  readonly policies: Pick<PolicyControl, 'policies' | 'revision' | 'isLeftOpen'>
  readonly endpoints: { readonly registry: Pick<EndpointRegistry, 'size' | typeof Symbol.iterator> }
  readonly transition: Pick<Transition, 'realizedRevision'>
  readonly emptyDenies: Pick<EmptyDenies, 'texts'>
  readonly adoption: Counted<AdoptionControl>
  readonly sources: {
    readonly policyFiles: Iterable<FileState>
    readonly recordFiles: Iterable<FileState>
    readonly ages: Pick<SourceAges, 'ages'>
    readonly fileTexts: { readonly tooLong: number } | undefined
  }
  /** Undefined without a cluster in the configuration. */
  readonly cluster: ClusterSources | undefined
  readonly mode: Pick<DaemonMode, 'now'>
  readonly interception: Pick<Interception, 'counters' | 'isInForce'>
  readonly repair: Counted<Repairs> | undefined
  readonly limits: readonly LimitUse[]
  /** Undefined while no flows are kept. */
  readonly keptFlows:
    | Pick<KeptFlows, 'remembered' | 'lost' | 'failed' | 'lines' | 'refused'>
    | undefined
  /** Undefined while nothing is kept over restarts. */
  readonly state: AdminState['kept']
  readonly putBack: Pick<PutBack, 'counts'> | undefined
  readonly page: PageCounts
}

interface ClusterSources extends Pick<Kubernetes, 'collections' | 'counts' | 'leftOut' | 'times'> {
  /** Undefined if no Events are configured. */
  readonly events: Pick<NonNullable<Kubernetes['events']>, 'counts'> | undefined
}

export type FileState = { readonly state: string }

interface ProxySources {
  readonly upstream: UpstreamSources
  readonly admission: Counted<DnsProxy['admission']>
  readonly settlement: Counted<DnsProxy['settlement']> & Pick<DnsProxy['settlement'], 'times'>
  readonly judge: Counted<DnsProxy['judge']>
  readonly learner: Counted<DnsProxy['learner']>
  readonly responder: Counted<DnsProxy['responder']>
  readonly stripping: Pick<DnsProxy['stripping'], 'counters' | 'taken'>
  readonly unknown: Pick<DnsProxy['unknown'], 'counters' | 'waiting' | 'times'>
  readonly prewarm: Counted<NonNullable<DnsProxy['prewarm']>> | undefined
  readonly releases: Pick<DnsProxy['releases'], 'counters' | 'count' | 'times'>
  readonly listeners: {
    readonly udp: readonly Counted<DnsProxy['listeners']['udp'][number]>[]
    readonly tcp: Counted<DnsProxy['listeners']['tcp']>
  }
}

interface UpstreamSources {
  readonly counters: Upstream['counters']
  readonly attempts: Counted<Upstream['attempts']>
  readonly waits: Counted<Upstream['waits']>
  readonly pool: Pick<
    Upstream['pool'],
    'answers' | 'counters' | 'failed' | 'failures' | 'first' | 'isDown' | 'roundTrips' | 'servers'
  > & { readonly rtt: Pick<Upstream['pool']['rtt'], 'means'> }
  readonly probes: Pick<Upstream['probes'], 'sent'>
  readonly links: { readonly asked: Pick<Upstream['links']['asked'], 'open' | 'counters'> }
  readonly inFlight: Pick<Upstream['inFlight'], 'count'>
  readonly udp: readonly Counted<Upstream['udp'][number]>[]
  readonly tcp: readonly Counted<Upstream['tcp'][number]>[]
}
