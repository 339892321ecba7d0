// `namegate policy wait`: until the datapath enforces a revision of policies completely.

import { DURATION_FORM, parseDuration } from '../../core/quantity.ts'
import { openClient } from '../client.ts'
import {
  EXIT_NEGATIVE,
  EXIT_OK,
  readArguments,
  toJson,
  usageError,
  type CommandOutput,
} from '../command.ts'
import { fieldsOf, numberOf } from '../fields.ts'

const HELP = `Usage: namegate policy wait [--revision N] [--timeout DURATION] [-o json]

Waits until the datapath enforces revision N of the policies completely: by default the one that the daemon wants when it
is asked. A changed file is read when it was quiet for 100 ms, which makes the next revision: 'namegate status' shows it.

Options:
  --revision N       at least this revision
  --timeout D        give up after this time, such as 500ms, 30s, 2m; default 30s, at most 1h
  -o json            one JSON object {revision, policyRevision, realizedRevision} on stdout
  --config FILE      config that names the daemon's socket
  --socket PATH      the daemon's socket
  -h, --help         this text

Exit codes: 0 realized, 1 not in that time, 2 wrong use, 3 no daemon, or none that answers.

Examples:
  namegate policy wait
  namegate policy wait --revision 12 --timeout 5s
`

const TIMEOUT_MS = 30_000

export async function policyWaitCommand(
  args: readonly string[],
  output: CommandOutput,
): Promise<number> {
  const options = {
    revision: { type: 'string' },
    timeout: { type: 'string' },
    socket: { type: 'string' },
  } as const
  const read = readArguments(args, HELP, output, options)
  if (typeof read === 'number') return read
  if (read.positionals.length > 0) return usageError('policy wait takes no argument', HELP, output)
  const revision = read.texts.get('revision')
  if (revision !== undefined && !/^\d{1,15}$/.test(revision)) {
    return usageError(
      `--revision: found ${JSON.stringify(revision)}, expected a number`,
      HELP,
      output,
    )
  }
  const timeout = timeoutOf(read.texts.get('timeout'))
  if (typeof timeout === 'string') return usageError(`--timeout: ${timeout}`, HELP, output)
  const path = `/v1/status?realized=${revision ?? 'wanted'}&timeout=${timeout}`
  const status = fieldsOf(await (await openClient(read)).get(path))
  const wanted = numberOf(status['waitedFor'])
  const desired = numberOf(status['policyRevision'])
  const realized = numberOf(status['realizedRevision'])
  const isRealized = realized >= wanted
  const numbers = `${desired} desired, ${realized} realized`
  const words = `revision ${wanted} ${isRealized ? 'is' : 'is not'} realized: ${numbers}\n`
  const found = { revision: wanted, policyRevision: desired, realizedRevision: realized }
  output.stdout(read.texts.has('output') ? toJson(found) : words)
  return isRealized ? EXIT_OK : EXIT_NEGATIVE
}

/** Milliseconds, or what is wrong. */
function timeoutOf(text: string | undefined): number | string {
  return text === undefined
    ? TIMEOUT_MS
    : (parseDuration(text) ?? `found ${JSON.stringify(text)}, expected ${DURATION_FORM}`)
}
