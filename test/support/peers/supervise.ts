// A supervisor for tests (supervise.c): a notify socket, and an activator that keeps listening sockets while it starts the daemon behind
// them again and again.

import { compiled } from './compiled.ts'
import { PROGRAM, type DaemonFolder } from '../nodes/daemon-process.ts'
import { LabProcess } from '../labs/lab-process.ts'

export class Supervise {
  readonly program = compiled('supervise')

  /** A notify socket at a path or `@name`. Its output has one line for each notice. */
  async notify(name: string): Promise<LabProcess> {
    const heard = new LabProcess(this.program, ['notify', name], {})
    await heard.untilOutput(/^ready$/m)
    return heard
  }

  /** `namegate run` behind sockets such as `udp:127.0.0.1:5300`. Starts it again after its end. */
  activate(
    folder: DaemonFolder,
    sockets: readonly string[],
    environment: Readonly<Record<string, string>> = {},
  ): LabProcess {
    const run = [PROGRAM, 'run', '--config', 'namegate.yaml']
    const variables = Object.entries(environment).map(([name, value]) => `${name}=${value}`)
    const args = ['activate', sockets.join(','), 'env', ...variables, ...run]
    return new LabProcess(this.program, args, { cwd: folder.path })
  }

  /** `namegate run` with more environment. */
  run(folder: DaemonFolder, env: Readonly<Record<string, string>>): LabProcess {
    return new LabProcess(PROGRAM, ['run', '--config', 'namegate.yaml'], { cwd: folder.path, env })
  }
}
