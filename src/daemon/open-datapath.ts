// Opens the datapath that the config names, with its bounds. If that kind is not available, openDatapath throws an error that names the
// remedy, and uses no other kind. refuseTaken refuses interfaces on which another daemon has its programs.

import { givenPrefixesMax } from '../enforcement/config-bounds.ts'
import type { Config } from '../config/config.ts'
import { UnavailableError } from '../core/errors.ts'
import { matchesPattern } from '../core/name-pattern.ts'
import type { Datapath } from '../datapath/datapath.ts'
import { EbpfDatapath } from '../datapath/ebpf/adapter.ts'
import { MemoryDatapath } from '../datapath/memory/memory.ts'
import { NftablesDatapath } from '../datapath/nftables/adapter.ts'
import { loadBpf, loadNetlink, loadPosix } from '../native/native.ts'
import type { EndpointHook } from '../endpoints/registry.ts'
import { fencedPatterns } from './parts.ts'
import { isLockFree, pinLockFile } from '../state/lock.ts'

export function openDatapath(config: Config): Datapath {
  const { limits, datapath, dns } = config
  const shared = {
    connectionsPerEndpoint: limits['connections-per-endpoint'],
    tcpIdleMs: dns.tcpIdleMs,
    udpIdleMs: dns.udpIdleMs,
  }
  const bounds = {
    prefixesMax: limits.pairs + givenPrefixesMax(config),
    policyEntriesMax: limits['policy-entries'] * POLICY_MAPS_FULL,
  }
  switch (datapath.kind) {
    case 'memory':
      return new MemoryDatapath(bounds)
    case 'ebpf':
      return new EbpfDatapath({
        ...shared,
        connections: limits.connections,
        endpointsMax: limits.endpoints,
        bpf: loadBpf(),
        posix: loadPosix(),
        pinPath: datapath.pinPath,
        isInUse: (pinPath) => !isLockFree(pinLockFile(pinPath)),
      })
    case 'nftables':
      return new NftablesDatapath({
        ...bounds,
        netlink: loadNetlink(),
        posix: loadPosix(),
      })
  }
}

/** Throws UnavailableError when an interface that the daemon would use has the programs of another running daemon. */
export function refuseTaken(
  config: Config,
  datapath: Datapath,
  endpoints: readonly { readonly hook: EndpointHook }[],
): void {
  if (!(datapath instanceof EbpfDatapath)) return
  const names = new Set(endpoints.map(({ hook }) => (hook.kind === 'interface' ? hook.name : '')))
  const patterns = fencedPatterns(config)
  const taken = datapath.takenInterface(
    (name) => names.has(name) || patterns.some((pattern) => matchesPattern(pattern, name)),
  )
  if (taken === undefined) return
  throw new UnavailableError(
    `Cannot start: interface ${taken.name} has the programs of the namegate with pin path ${taken.pinPath}: ` +
      'stop that one, or give each of them interfaces of its own',
  )
}

/** How many policy maps can be full before the table that they share is full. */
const POLICY_MAPS_FULL = 64
