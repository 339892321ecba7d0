// The folder of a run of `namegate up`, when the run before was killed: the next run for the same workload continues with the state in it,
// which has what the daemon learned. Everything else of the folder is removed and written anew.

import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { TABLE } from '../../datapath/nftables/rules/layout.ts'
import { NO_AUDIT_SETTINGS } from '../../enforcement/audit-control.ts'
import type { RunTool } from '../../intercept/tools.ts'
import { readSettings } from '../../state/settings.ts'
import { noteIn, workloadOf } from './added-lines.ts'
import type { UpTarget } from './arguments.ts'
import { STATE_FOLDER } from './files.ts'
import { hasTable } from './network.ts'
import type { UpPlan } from './plan.ts'

const SETTINGS_FILE = 'settings.json'

/**
 * True if the state in the folder is of this workload. A namespace can be made again under the same name, with interfaces of the same
 * numbers. Its rules ended with it, so the state belongs to a namespace that has none of them to another namespace.
 */
export async function isStateOf(
  folder: string,
  target: UpTarget,
  { namespace }: Pick<UpPlan, 'namespace'>,
  run: RunTool,
): Promise<boolean> {
  if (noteIn(folder)?.workload !== workloadOf(target)) return false
  return namespace === undefined || (await hasTable(run, namespace, TABLE))
}

/** Removes everything in the folder, except the state if `keepsState`. */
export function emptyFolder(folder: string, keepsState: boolean): void {
  if (!keepsState) {
    rmSync(folder, { recursive: true, force: true })
    return
  }
  for (const name of readdirSync(folder)) {
    if (name !== STATE_FOLDER) rmSync(join(folder, name), { recursive: true, force: true })
  }
}

/** Removes audit settings that were made at run time, because the command line decides about audit. True if there were any. */
export function dropSettings(folder: string): boolean {
  const file = join(folder, STATE_FOLDER, SETTINGS_FILE)
  const { audit } = readSettings(file)
  rmSync(file, { force: true })
  return JSON.stringify(audit) !== JSON.stringify(NO_AUDIT_SETTINGS)
}
