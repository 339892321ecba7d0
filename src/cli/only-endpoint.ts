// `onlyEndpoint` returns the endpoint that a command without --as is about: the only one of the daemon.

import { UsageError } from '../core/errors.ts'
import { foundNames } from '../core/did-you-mean.ts'
import type { Client } from '../client/client.ts'
import type { CommandOutput } from './command.ts'
import { textOf } from './fields.ts'

/** Returns the name of the only endpoint, and writes it to stderr. Throws UsageError if there is none, or more than one. */
export async function onlyEndpoint(client: Client, output: CommandOutput): Promise<string> {
  const names = await endpointNames(client)
  const [only] = names
  if (only === undefined || names.length > 1) {
    throw new UsageError(`give --as ENDPOINT: ${foundNames('', names)}`)
  }
  output.stderr(`namegate: for ${only}, the only endpoint\n`)
  return only
}

/** Returns the names of the daemon's endpoints. */
export async function endpointNames(client: Client): Promise<readonly string[]> {
  const names: string[] = []
  for await (const { name } of client.rows('GET /v1/endpoints', {})) names.push(textOf(name))
  return names
}
