// The repair of the kernel's entries, where there is a kernel whose entries others can reach.

import { Repair } from '../control/repair.ts'
import type { Daemon } from './daemon.ts'
import { tellRepaired, tellTouched } from './news.ts'
import type { Log } from '../telemetry/log.ts'

/** Undefined for a datapath that looks after itself. */
export function openRepair(
  daemon: Pick<Daemon, 'config' | 'core' | 'endpoints' | 'restart'>,
  log: Log,
): Repair | undefined {
  const { datapath } = daemon.config
  if (datapath.kind === 'nftables') daemon.core.datapath.onTouched?.(() => tellTouched(log))
  if (datapath.kind !== 'ebpf') return undefined
  return new Repair({
    core: daemon.core,
    endpoints: () => daemon.endpoints.entries(),
    isSettled: () => daemon.restart.phase === 'done',
    everyMs: datapath.verifyMs,
    onRepaired: (first, count) => tellRepaired(log, first, count),
    onFault: (reason) => log.limited('verify', { reason }, 'the kernel cannot be compared'),
  })
}
