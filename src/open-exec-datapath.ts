// The datapath of `namegate exec`: nftables in the command's network namespace, by netlink sockets that were opened there.

import { configuredPrefixesMax } from './control/config-bounds.ts'
import type { Config } from './config/config.ts'
import type { Datapath } from './datapath/datapath.ts'
import { NftablesDatapath } from './datapath/nftables/adapter.ts'
import type { InnerAddons } from './sandbox/inner-addons.ts'

/** `dns.tcp-idle`, whose other values are not built yet, in milliseconds. */
const TCP_IDLE_MS = 6 * 3_600_000

export function openExecDatapath({ limits }: Config, addons: InnerAddons): Datapath {
  return new NftablesDatapath({
    ...addons,
    prefixesMax: limits.pairs + configuredPrefixesMax(limits),
    policyEntriesMax: limits['policy-entries'],
    tcpIdleMs: TCP_IDLE_MS,
  })
}
