// Opens the datapath of the config, with its bounds. A kind that is not available is an error with the remedy; no other kind
// takes its place.

import { configuredPrefixesMax } from '../enforcement/config-bounds.ts'
import type { Config } from '../config/config.ts'
import type { Datapath } from '../datapath/datapath.ts'
import { EbpfDatapath } from '../datapath/ebpf/adapter.ts'
import { MemoryDatapath } from '../datapath/memory/memory.ts'
import { NftablesDatapath } from '../datapath/nftables/adapter.ts'
import { loadBpf, loadNetlink, loadPosix } from '../native/native.ts'

export function openDatapath(config: Config): Datapath {
  const { limits, datapath, dns } = config
  const shared = {
    connectionsPerEndpoint: limits['connections-per-endpoint'],
    tcpIdleMs: dns.tcpIdleMs,
    udpIdleMs: dns.udpIdleMs,
  }
  const bounds = {
    prefixesMax: limits.pairs + configuredPrefixesMax(limits),
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
      })
    case 'nftables':
      return new NftablesDatapath({
        ...bounds,
        netlink: loadNetlink(),
        posix: loadPosix(),
      })
  }
}

/** Policy maps that may be full at the same time before the shared table is. */
const POLICY_MAPS_FULL = 64
