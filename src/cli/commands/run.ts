// `namegate run`: the daemon. Reads the config, opens the log and stays until the daemon has ended.

import { systemClock } from '../../core/clock.ts'
import { runDaemon } from '../../daemon/run.ts'
import { takePassedSockets } from '../../systemd/activation.ts'
import { takeSupervisor } from '../../systemd/notify.ts'
import { openLog } from '../../telemetry/log.ts'
import { readArguments, usageError, type CommandOutput } from '../command.ts'
import { readConfig } from '../read-config.ts'

const HELP = `Usage: namegate run [--config FILE] [--take-over]

Runs the daemon in the foreground until SIGTERM or SIGINT; then it answers what is in flight, and the kernel goes on
enforcing. SIGHUP reads policies and endpoints again. Logs go to stderr.

Options:
  --take-over       goes on with listeners, connections and state of the running daemon, which then ends
  --config FILE     configuration; default: $NAMEGATE_CONFIG, else config/namegate.yaml, else
                    /etc/namegate/namegate.yaml, else the built-in defaults
  -h, --help        this text

Exit codes: 0 stopped as told, or taken over; 2 invalid config, policy or endpoints; 3 could not start (port, privilege,
kernel) or take over: then the running daemon goes on.

Examples:
  namegate run
  namegate run --config /etc/namegate/namegate.yaml
`

export async function runCommand(args: readonly string[], output: CommandOutput): Promise<number> {
  const read = readArguments(args, HELP, output, { 'take-over': { type: 'boolean' } })
  if (typeof read === 'number') return read
  if (read.positionals.length > 0) return usageError('run takes no argument', HELP, output)
  const takesOver = read.flags.has('take-over')
  const supervisor = takeSupervisor(process.env, process.pid)
  const passed = takePassedSockets(process.env, process.pid)
  const config = readConfig(read.texts.get('config'))
  const colours = process.stderr.isTTY && process.env['NO_COLOR'] === undefined
  const log = await openLog({ ...config.log, clock: systemClock, colours })
  return await runDaemon({ config, log, passed, supervisor, takesOver })
}
