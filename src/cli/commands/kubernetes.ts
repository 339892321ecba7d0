// `runKubernetes` runs `namegate kubernetes accept`, which removes the policies that a cluster has lost and that are held in force.

import { openClient } from '../client.ts'
import { EXIT_OK, toJson, type CommandOutput, type ParsedArguments } from '../command.ts'
import { textOf } from '../fields.ts'

export async function runKubernetes(read: ParsedArguments, output: CommandOutput): Promise<number> {
  const [action, ...rest] = read.positionals
  if (action !== 'accept' || rest.length > 0) return read.wrong('kubernetes takes accept')
  const client = await openClient(read)
  const answer = (await client.request('POST /v1/kubernetes/accept')).value
  const { removed } = answer
  const text =
    removed === 0 ? 'no removed policies are held' : `${textOf(removed)} policies removed`
  output.stdout(read.texts.has('output') ? toJson(answer) : `${text}\n`)
  return EXIT_OK
}
