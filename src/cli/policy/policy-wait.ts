// `runPolicyWait` runs `namegate policy wait`. The command waits until the datapath completely enforces a revision of policies.

import type { Status } from '../../client/api-types.ts'
import { DURATION_FORM, parseDuration } from '../../core/quantity.ts'
import { openClient } from '../client.ts'
import {
  EXIT_NEGATIVE,
  EXIT_OK,
  toJson,
  type CommandOutput,
  type ParsedArguments,
} from '../command.ts'
import { faultNotes } from '../file-faults.ts'
import { numberOf, type PartOf } from '../fields.ts'

const TIMEOUT_MS = 30_000

export async function runPolicyWait(read: ParsedArguments, output: CommandOutput): Promise<number> {
  if (read.positionals.length > 0) return read.wrong('policy wait takes no argument')
  const revision = read.texts.get('revision')
  if (revision !== undefined && !/^\d{1,15}$/.test(revision)) {
    return read.wrong(`--revision: found ${JSON.stringify(revision)}, expected a number`)
  }
  const timeout = timeoutOf(read.texts.get('timeout'))
  if (typeof timeout === 'string') return read.wrong(`--timeout: ${timeout}`)
  const query = { realized: revision ?? 'wanted', timeout }
  const client = await openClient(read)
  const reply = await client.request('GET /v1/status', { query })
  const status: PartOf<Status> = reply.value
  const wanted = numberOf(status.waitedFor)
  const desired = numberOf(status.policyRevision)
  const realized = numberOf(status.realizedRevision)
  const isRealized = realized >= wanted
  const numbers = `${desired} desired, ${realized} realized`
  const words = `revision ${wanted} ${isRealized ? 'is' : 'is not'} realized: ${numbers}\n`
  const found = { revision: wanted, policyRevision: desired, realizedRevision: realized }
  output.stdout(read.texts.has('output') ? toJson(found) : words)
  output.stderr(await faultNotes(client))
  return isRealized ? EXIT_OK : EXIT_NEGATIVE
}

/** Returns the time of --timeout in milliseconds. Returns the fault as text if the value is wrong. */
function timeoutOf(text: string | undefined): number | string {
  return text === undefined
    ? TIMEOUT_MS
    : (parseDuration(text) ?? `found ${JSON.stringify(text)}, expected ${DURATION_FORM}`)
}
