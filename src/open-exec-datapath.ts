// The datapath of `namegate exec`: nftables in the command's network namespace, by netlink sockets that were opened there.

import type { Clock } from './core/clock.ts'
import { UnavailableError } from './core/errors.ts'
import type { Config } from './config/config.ts'
import type { Datapath } from './datapath/datapath.ts'

export function openExecDatapath(
  _config: Config,
  _clock: Clock,
  _netlink: readonly number[],
): Datapath {
  throw new UnavailableError('Cannot fence the command: the nftables datapath is not built')
}
