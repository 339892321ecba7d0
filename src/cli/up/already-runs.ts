// `alreadyRuns` makes the error of `namegate up` for a workload that a daemon protects already. The daemon says which configuration it has:
// that of an `up` in another terminal, that of an `up` that was killed, or one that `up --write` saved and that runs without `up`.

import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { UnavailableError } from '../../core/errors.ts'
import type { Status } from '../../client/api-types.ts'
import { clientOf } from '../client.ts'
import type { PartOf } from '../fields.ts'
import { program } from '../program.ts'
import { shellWord } from '../shell-word.ts'
import { noteIn } from './added-lines.ts'
import { ALLOW_FILE, configOfList, SOCKET } from './files.ts'
import type { UpPlan } from './plan.ts'
import { addLine } from './watched-list.ts'

/** How long the daemon can take to answer, in milliseconds. */
const ANSWER_MS = 2000

/** `running`: the folder with the socket at which the daemon listens. */
export async function alreadyRuns(
  { name, namespace }: Pick<UpPlan, 'name' | 'namespace'>,
  running: string,
): Promise<UnavailableError> {
  const socket = join(running, SOCKET)
  const noted = noteIn(running)?.list
  const config = (await configAt(socket)) ?? (noted === undefined ? undefined : configOfList(noted))
  if (config === undefined || !existsSync(config)) {
    const ask = `${program()} status --socket ${shellWord(socket)}`
    return new UnavailableError(
      `A daemon already protects ${name} (socket ${socket}), and its configuration is not known: see ${ask}`,
    )
  }
  const list = noted ?? join(dirname(config), ALLOW_FILE)
  const more = existsSync(dirname(list))
    ? [`  To allow more: ${addLine('NAME', { file: list, isMade: true })}`]
    : []
  // The plan of now can differ from the one of that daemon: only with redirect are the rules in the namespace.
  const isInside = /mode: redirect\b/.test(readFileSync(config, 'utf8'))
  const inside = namespace === undefined || !isInside ? '' : `nsenter --net=${namespace} `
  const file = shellWord(config)
  const lines = [
    `A daemon already protects ${name} (socket ${socket}, configuration ${config})`,
    ...more,
    '  End it with Ctrl-C in its terminal, or with:',
    `  ${program()} datapath detach --config ${file} --socket ${socket}`,
    `  ${inside}${program()} intercept down --config ${file}`,
    `  rm -rf ${shellWord(running)}`,
  ]
  return new UnavailableError(lines.join('\n'))
}

/** Returns the configuration of the daemon at a socket. Undefined if the daemon does not answer. */
async function configAt(socket: string): Promise<string | undefined> {
  try {
    const client = clientOf({ path: socket, named: 'of this workload' })
    const { value } = await client.request('GET /v1/status', { timeoutMs: ANSWER_MS })
    const { config }: PartOf<Status> = value
    return typeof config === 'string' ? config : undefined
  } catch {
    return undefined
  }
}
