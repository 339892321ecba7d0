// What the pipeline is put together from (dns-proxy.ts). Types only.

import type { Committer } from '../../datapath/committer.ts'
import type { EndpointRegistry } from '../../endpoints/registry.ts'
import type { Backlog } from '../server/backlog.ts'
import type { ClientEndpoints } from './client-endpoints.ts'
import type { Judge } from './judge.ts'
import type { Learner } from './learner.ts'
import type { ProxyFlows } from './proxy-flows.ts'
import type { ReleaseQueue } from './release-queue.ts'
import type { Responder } from '../server/responder.ts'
import type { SelfCheck } from '../self-check.ts'
import type { Stripping } from './stripping.ts'
import type { UnknownClients } from './unknown-clients.ts'
import type { Upstream } from '../upstream/upstream.ts'

export interface PipelineOptions {
  readonly registry: EndpointRegistry
  readonly clients: ClientEndpoints
  readonly judge: Judge
  readonly learner: Learner
  readonly committer: Committer
  readonly upstream: Pick<Upstream, 'forward' | 'release' | 'inFlight'>
  readonly responder: Responder
  readonly releases: ReleaseQueue
  readonly flows: ProxyFlows
  readonly backlog: Backlog
  readonly unknown: Pick<UnknownClients, 'hold'>
  /** What becomes of a query whose client is still unknown: `unknown-clients.then`. */
  readonly onUnknown: 'refuse' | 'allow-unmanaged'
  /** Whether policy is loaded. */
  readonly isReady: () => boolean
  readonly denyResponse: 'refused' | 'nxdomain' | 'nodata' | 'drop'
  readonly onLimit: 'servfail' | 'drop' | 'release'
  readonly onDegraded: 'release' | 'servfail' | 'strip-addresses'
  readonly stripping: Stripping
  /** Queries of our own that ask whether all of this works; undefined when nobody asks. */
  readonly selfCheck?: SelfCheck | undefined
}
