// The repair of the kernel's entries, where there is a kernel whose entries others can reach.

import { Repair } from '../reconcile/repair.ts'
import type { Datapath } from '../datapath/datapath.ts'
import type { Daemon } from './daemon.ts'
import { reportRepaired } from './log-reports.ts'
import type { Log } from '../telemetry/log.ts'

/** Repairs of every kind, by the daemon or by the datapath itself. */
export type Repairs = Pick<Repair, 'counters' | 'start' | 'stop'>

/** Undefined for a datapath that no other process reaches. */
export function openRepair(
  daemon: Pick<Daemon, 'config' | 'core' | 'endpoints' | 'restart'>,
  log: Log,
): Repairs | undefined {
  const { datapath } = daemon.config
  if (datapath.kind === 'nftables') return repairsOf(daemon.core.datapath, log)
  if (datapath.kind !== 'ebpf') return undefined
  return new Repair({
    core: daemon.core,
    endpoints: () => daemon.endpoints.entries(),
    inheritedPolicies: () => daemon.restart.inheritedPolicies,
    everyMs: datapath.verifyMs,
    onRepaired: (first, count) => reportRepaired(log, first, count),
    onFault: (reason) => log.limited('verify', { reason }, 'the kernel cannot be compared'),
  })
}

/** Of a datapath that looks after itself. */
function repairsOf(datapath: Datapath, log: Log): Repairs {
  let repaired = 0
  datapath.onRepaired?.((first, count) => {
    repaired += count
    reportRepaired(log, first, count)
  })
  return {
    get counters() {
      return { walks: datapath.looks ?? 0, repaired }
    },
    start: () => undefined,
    stop: () => undefined,
  }
}
