// `runRun` runs `namegate run`. It reads the config, opens the log, runs the daemon, and returns when the daemon has ended.

import { CREDENTIALS_VARIABLE } from '../../config/credentials.ts'
import { systemClock } from '../../core/clock.ts'
import { runDaemon } from '../../daemon/run.ts'
import { takePassedSockets } from '../../systemd/activation.ts'
import { takeSupervisor } from '../../systemd/notify.ts'
import { openLog } from '../../telemetry/log.ts'
import type { ParsedArguments } from '../command.ts'
import { readConfig } from '../config-file.ts'

export async function runRun(read: ParsedArguments): Promise<number> {
  if (read.positionals.length > 0) return read.wrong('run takes no argument')
  const takesOver = read.flags.has('take-over')
  const supervisor = takeSupervisor(process.env, process.pid)
  const passed = takePassedSockets(process.env, process.pid)
  const credentials = process.env[CREDENTIALS_VARIABLE] ?? ''
  const config = await readConfig(read.texts.get('config'), credentials)
  const colours = process.stderr.isTTY && process.env['NO_COLOR'] === undefined
  const log = await openLog({ ...config.log, clock: systemClock, colours })
  return await runDaemon({ config, log, passed, supervisor, takesOver })
}
