// Parts of the daemon that are made from its config alone; daemon.ts puts them together.

import { constants } from 'node:os'
import type { Clock } from '../core/clock.ts'
import { InvalidInputError, UnavailableError } from '../core/errors.ts'
import { formatAddress, parseAddress, type Family, type Prefix } from '../core/ip.ts'
import { AdoptionControl, type TrackedFlow } from '../enforcement/adoption-control.ts'
import {
  AuditControl,
  NO_AUDIT_SETTINGS,
  type AuditSettings,
} from '../enforcement/audit-control.ts'
import { configuredPrefixesMax } from '../enforcement/config-bounds.ts'
import { CoreState } from '../enforcement/core-state.ts'
import type { Persistence } from '../restore/persistence.ts'
import { PolicyControl } from '../enforcement/policy-control.ts'
import type { Config } from '../config/config.ts'
import { ownAddresses } from '../config/own-addresses.ts'
import { resolveUpstreams } from '../config/upstreams.ts'
import type { Log } from '../telemetry/log.ts'
import type { GivenSockets } from '../proxy/server/listeners.ts'
import type { ResourceKeeper } from '../sources/api-resources.ts'
import type { StateFolder } from '../restore/state-port.ts'
import type { DatapathDump } from '../datapath/entries.ts'
import type { Datapath } from '../datapath/datapath.ts'
import type { OwnTraffic } from '../datapath/abilities.ts'
import { IdentityLabels } from '../policy/identity-labels.ts'
import { openConntrack } from '../native/netfilter/conntrack.ts'
import { isBuilt } from '../native/native.ts'
import type { DnsProxy } from '../proxy/dns-proxy.ts'
import { Readiness } from '../proxy/upstream/probes.ts'
import type { ServerAddress } from '../proxy/upstream/server-pool.ts'
import { systemResolvers } from '../sources/system-resolvers.ts'

/** What a daemon is made from. */
export interface DaemonOptions {
  readonly config: Config
  readonly log: Log
  readonly datapath: Datapath
  readonly clock?: Clock
  /** Settings made at run time before, and where new ones are kept. */
  readonly auditSettings?: AuditSettings
  readonly saveAudit?: (settings: AuditSettings) => void
  /** Resources of the admin API over restarts. */
  readonly resourceKeeper?: ResourceKeeper
  /** What outlives the process. Absent: nothing does but what the kernel has. */
  readonly kept?: StateFolder | undefined
  /** In the place of those of the config. */
  readonly servers?: readonly ServerAddress[]
  /** Listening sockets of another network namespace. */
  readonly sockets?: readonly GivenSockets[]
  /** Those of our own that were bound before we started. */
  readonly passed?: readonly GivenSockets[] | undefined
}

const SECOND_MS = 1000

export function makeCore(
  config: Config,
  clock: Clock,
  datapath: Datapath,
  restored: DatapathDump,
  node: readonly Prefix[],
  persistence?: Persistence,
): CoreState {
  const { limits, dns, learning } = config
  return new CoreState({
    ...persistence?.ofCore,
    clock,
    datapath,
    restored,
    limits: {
      names: limits,
      dynamicIdentities: limits['dynamic-identities'],
      dynamicIdentitiesPerEndpoint: limits['dynamic-identities-per-endpoint'],
      policyEntries: limits['policy-entries'],
      configuredPrefixes: configuredPrefixesMax(limits),
    },
    graceSeconds: Math.ceil(dns.graceAfterTtlMs / SECOND_MS),
    learning,
    nodeAddresses: node,
    protectedPrefixes: dns.protectedPrefixes,
    cidrMatchesEndpoints: config.policies.cidrMatchesEndpoints,
  })
}

export function makeAudit({ config, auditSettings, saveAudit }: DaemonOptions): AuditControl {
  return new AuditControl({
    node: config.audit.node,
    selectors: config.audit.endpoints,
    settings: auditSettings ?? NO_AUDIT_SETTINGS,
    save: saveAudit ?? (() => undefined),
  })
}

export function makePolicies(
  config: Config,
  core: CoreState,
  families: readonly Family[] = [],
): PolicyControl {
  return new PolicyControl({
    core,
    families,
    defaultEgress: config.defaultEgress,
    withoutDnsRules: config.dns.withoutRules,
    staticIdentitiesMax: config.limits['static-identities'],
    identityLabels: new IdentityLabels(config.endpoints.identityLabels, config.clusterName),
  })
}

export function makeReadiness(config: Config, clock: Clock, { upstream }: DnsProxy): Readiness {
  const { pool, probes } = upstream
  return new Readiness({ clock, pool, probes, timeoutMs: config.upstreams.timeoutMs })
}

/** Spares what was open before; where nothing enforces nothing is listed. */
export function makeAdoption(
  { datapath: { kind, adoptExistingMs } }: Config,
  datapath: Datapath,
  nodeAddresses: readonly Prefix[],
): AdoptionControl {
  const listFlows = kind === 'memory' ? () => 0 : listTracked
  return new AdoptionControl({ datapath, passMs: adoptExistingMs, nodeAddresses, listFlows })
}

function listTracked(family: Family, visit: (flow: TrackedFlow) => void): number {
  if (!isBuilt('conntrack')) return -constants.errno.ENOSYS
  const opened = openConntrack()
  if (opened.kind === 'absent') return opened.errno
  const errno = opened.table.dump(family, visit)
  opened.table.close()
  return errno
}

/** The configured servers, `system` resolved; throws when one is ourselves or there is none. */
export function serversOf(config: Config): readonly ServerAddress[] {
  const { addresses, faults } = resolveUpstreams(
    config.upstreams.servers,
    config.listeners,
    ownAddresses(),
    systemResolvers,
  )
  if (faults.length > 0) throw new InvalidInputError(faults)
  if (addresses.length === 0) {
    throw new UnavailableError('No upstream server: name one under upstreams.servers')
  }
  return addresses.map(({ family, octets, port }) => {
    return { family, address: formatAddress(family, octets), port }
  })
}

/** What the proxy sends, which the fence of a workload in our own network namespace would stop as well. */
export function ownTraffic(
  { intercept: { mark } }: Config,
  servers: readonly ServerAddress[],
): readonly OwnTraffic[] {
  const uid = process.geteuid?.() ?? 0
  return servers.flatMap(({ family, address, port }) => {
    const parsed = parseAddress(address)
    return parsed === undefined ? [] : [{ mark, uid, family, octets: parsed.octets, port }]
  })
}

/** Interfaces that are closed, DNS apart, until an endpoint has them; none where clients may be unmanaged. */
export function fencedPatterns({ listeners, unknownClients }: Config): readonly string[] {
  if (unknownClients.onTimeout === 'allow-unmanaged') return []
  return [...new Set(listeners.flatMap(({ interfaces }) => interfaces))]
}
