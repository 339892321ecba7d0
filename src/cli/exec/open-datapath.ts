// The datapath of `namegate exec`: nftables in the command's network namespace, by netlink sockets that were opened there.

import { configuredPrefixesMax } from '../../enforcement/config-bounds.ts'
import type { Config } from '../../config/config.ts'
import type { Datapath } from '../../datapath/datapath.ts'
import { NftablesDatapath } from '../../datapath/nftables/adapter.ts'
import type { InnerAddons } from '../../sandbox/inner-addons.ts'

export function openExecDatapath({ limits }: Config, addons: InnerAddons): Datapath {
  return new NftablesDatapath({
    ...addons,
    isAlone: true,
    prefixesMax: limits.pairs + configuredPrefixesMax(limits),
    policyEntriesMax: limits['policy-entries'],
  })
}
