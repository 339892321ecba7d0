// Checks for `namegate doctor` that what the kernel enforces belongs to a running daemon.

import { findAbandoned } from '../abandoned.ts'
import { Findings, type Check } from './finding.ts'

export const checkEnforcement: Check = async ({ machine, config }) => {
  const finding = new Findings('enforcement')
  const found = await findAbandoned(machine.run, config)
  if (found.length > 0) return found.map((each) => finding.problem(each.found, each.remedy))
  const nothing = 'found nothing that is in force without a daemon'
  return machine.can('CAP_NET_ADMIN')
    ? [finding.ok(nothing)]
    : [finding.unchecked(nothing, 'run this command as root, which sees all rules')]
}
