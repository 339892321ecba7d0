// Opens the repair of the kernel's entries, for a datapath whose entries other processes can reach.

import { Repair } from '../reconcile/repair.ts'
import type { RepairByAdapter } from '../datapath/repair.ts'
import type { Config } from '../config/config.ts'
import type { CoreState } from '../enforcement/core-state.ts'
import type { EndpointControl } from '../enforcement/endpoint-control.ts'
import type { Restart } from '../restore/restart.ts'
import { reportRepaired } from './log-reports.ts'
import type { Log } from '../telemetry/log.ts'

/** Repairs of every kind, by the daemon or by the datapath itself. */
export type Repairs = Pick<Repair, 'counters' | 'start' | 'stop'>

export interface RepairParts {
  readonly config: Config
  readonly core: CoreState
  readonly endpoints: EndpointControl
  readonly restart: Restart
}

/** Undefined for a datapath that no other process reaches. */
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

/** Of a datapath that looks after itself. */
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
