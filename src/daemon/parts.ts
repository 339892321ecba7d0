// Makes the parts of the daemon that need little more than its config. daemon.ts connects the parts.

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
import { givenPrefixesMax } from '../enforcement/config-bounds.ts'
import { CoreState } from '../enforcement/core-state.ts'
import { fileDocuments, type Persistence } from '../restore/persistence.ts'
import { PolicyControl } from '../enforcement/policy-control.ts'
import type { Config } from '../config/config.ts'
import { ownAddresses, systemResolvers } from '../config/machine.ts'
import { resolveUpstreams } from '../config/upstreams.ts'
import type { Log } from '../telemetry/log.ts'
import type { GivenSockets } from '../proxy/server/listeners.ts'
import type { Kubernetes } from '../kubernetes/kubernetes.ts'
import type { ResourceKeeper } from '../sources/api-resources.ts'
import type { ConfigSources } from '../sources/config-sources.ts'
import type { SavedDocument, StateFolder } from '../restore/state-port.ts'
import type { DatapathDump } from '../datapath/entries.ts'
import type { Datapath } from '../datapath/datapath.ts'
import type { OwnTraffic } from '../datapath/abilities.ts'
import { IdentityLabels } from '../policy/identity-labels.ts'
import { openConntrack } from '../native/netfilter/conntrack.ts'
import { isBuilt } from '../native/native.ts'
import { Repair } from '../reconcile/repair.ts'
import type { Restart } from '../restore/restart.ts'
import type { RepairByAdapter } from '../datapath/repair.ts'
import type { EndpointControl } from '../enforcement/endpoint-control.ts'
import type { OpenCluster } from './open-cluster.ts'
import { reportRepaired } from './log-reports.ts'
import type { ServerAddress } from '../proxy/upstream/server-pool.ts'

/** What a daemon is made from. */
export interface DaemonOptions {
  readonly config: Config
  readonly log: Log
  readonly datapath: Datapath
  readonly clock?: Clock
  /** Audit settings that an earlier daemon received at run time. `saveAudit` keeps new settings. */
  readonly auditSettings?: AuditSettings
  readonly saveAudit?: (settings: AuditSettings) => void
  /** Keeps the resources of the admin API over restarts. */
  readonly resourceKeeper?: ResourceKeeper
  /** The state folder. If absent, only the kernel's entries outlive the process. */
  readonly kept?: StateFolder | undefined
  /** Opens the cluster of the configuration. If absent, namegate reads files only. */
  readonly openCluster?: OpenCluster | undefined
  /** Used instead of the servers of the config. */
  readonly servers?: readonly ServerAddress[]
  /** Used instead of the addresses that this machine has when the daemon is made. */
  readonly nodeAddresses?: readonly Prefix[]
  /** Listening sockets of another network namespace. */
  readonly sockets?: readonly GivenSockets[]
  /** Listening sockets that were bound before the start. */
  readonly passed?: readonly GivenSockets[] | undefined
}

const SECOND_MS = 1000

export interface CoreParts {
  readonly config: Config
  readonly clock: Clock
  readonly datapath: Datapath
  /** What the datapath held at the start. */
  readonly restored: DatapathDump
  readonly nodeAddresses: readonly Prefix[]
  /** If absent, changes of the core are not recorded in the state folder. */
  readonly persistence?: Persistence
}

export function makeCore({ config, persistence, ...parts }: CoreParts): CoreState {
  const { limits, dns, learning } = config
  return new CoreState({
    ...persistence?.ofCore,
    ...parts,
    limits: {
      names: limits,
      dynamicIdentities: limits['dynamic-identities'],
      dynamicIdentitiesPerEndpoint: limits['dynamic-identities-per-endpoint'],
      policyEntries: limits['policy-entries'],
      configuredPrefixes: givenPrefixesMax(config),
    },
    graceSeconds: Math.ceil(dns.graceAfterTtlMs / SECOND_MS),
    learning,
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

/**
 * Makes the part that allows connections which are older than enforcement. The `memory` datapath enforces nothing, so no connections are
 * listed for it.
 */
export function makeAdoption(
  { datapath: { kind, adoptExistingMs } }: Config,
  datapath: Datapath,
  nodeAddresses: readonly Prefix[],
): AdoptionControl {
  const listFlows = kind === 'memory' ? () => 0 : listTracked
  return new AdoptionControl({ datapath, passMs: adoptExistingMs, nodeAddresses, listFlows })
}

function listTracked(visit: (flow: TrackedFlow) => void): number {
  if (!isBuilt('conntrack')) return -constants.errno.ENOSYS
  const opened = openConntrack()
  if (opened.kind === 'absent') return opened.errno
  const errno = opened.table.dump(visit)
  opened.table.close()
  return errno
}

/** The configured servers, with `system` resolved. Throws when a server is namegate itself, or when there is no server. */
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

/** The packets of the proxy itself. If the proxy shares a network namespace with a workload, the workload's hook must allow them. */
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

/** Patterns of the interfaces that are fenced. There are none if unknown clients are allowed (`allow-unmanaged`). */
export function fencedPatterns({ listeners, unknownClients }: Config): readonly string[] {
  if (unknownClients.onTimeout === 'allow-unmanaged') return []
  return [...new Set(listeners.flatMap(({ interfaces }) => interfaces))]
}

/** Repairs of the kernel's entries, made by the daemon or by the datapath itself. */
export type Repairs = Pick<Repair, 'counters' | 'start' | 'stop'>

interface RepairParts {
  readonly config: Config
  readonly core: CoreState
  readonly endpoints: EndpointControl
  readonly restart: Restart
}

/** Repairs the kernel's entries. Returns undefined for a datapath that no other process can change. */
export function openRepair(daemon: RepairParts, log: Log): Repairs | undefined {
  const { datapath } = daemon.config
  const { repair } = daemon.core.datapath
  if (repair.kind === 'by-adapter') return repairsOf(repair, log)
  if (repair.kind !== 'by-daemon' || datapath.kind !== 'ebpf') return undefined
  return new Repair({
    core: daemon.core,
    endpoints: () => daemon.endpoints.entries(),
    inheritedPolicies: () => daemon.restart.inheritedPolicies,
    everyMs: datapath.verifyMs,
    onRepaired: (first, count) => reportRepaired(log, first, count),
    onFault: (reason) => log.limited('verify', { reason }, 'the kernel cannot be compared'),
  })
}

/** Counts and logs the repairs of a datapath that repairs itself. */
function repairsOf(repair: RepairByAdapter, log: Log): Repairs {
  let repaired = 0
  repair.onRepaired((first, count) => {
    repaired += count
    reportRepaired(log, first, count)
  })
  return {
    get counters() {
      return { walks: repair.walks(), repaired }
    },
    start: () => undefined,
    stop: () => undefined,
  }
}

/** Everything that the state keeps as a text. */
export function documentsOf({
  sources,
  cluster,
  endpoints,
}: {
  readonly sources: Pick<ConfigSources, 'fileTexts'>
  readonly cluster: Pick<Kubernetes, 'texts'> | undefined
  readonly endpoints: EndpointControl
}): readonly SavedDocument[] {
  const files = [sources.fileTexts?.kept, cluster?.texts].flatMap(fileDocuments)
  return [...endpoints.documents(), ...files]
}
