// `runResource` runs `namegate resource set|remove`. The command sets or removes a resource, which gives labels to addresses that no
// endpoint has, at run time.

import type { ResourceBody, ResourceChange } from '../../client/api-types.ts'
import type { Client } from '../../client/client.ts'
import { isStatus, openClient } from '../client.ts'
import {
  EXIT_NEGATIVE,
  EXIT_OK,
  toJson,
  type CommandOutput,
  type ParsedArguments,
} from '../command.ts'
import { textOf, type PartOf } from '../fields.ts'

/** Options that are wrong with `remove`. */
const SET_OPTIONS = ['address', 'label', 'port', 'ttl'] as const

export async function runResource(read: ParsedArguments, output: CommandOutput): Promise<number> {
  const [act, name, ...rest] = read.positionals
  if ((act !== 'set' && act !== 'remove') || name === undefined || rest.length > 0) {
    return read.wrong('resource needs set or remove, and a name')
  }
  const given = SET_OPTIONS.filter((key) => read.texts.has(key) || read.lists.has(key))
  if (act === 'remove' && given.length > 0) {
    return read.wrong(`resource remove takes no --${given[0] ?? ''}`)
  }
  const body = act === 'set' ? bodyOf(read) : undefined
  if (typeof body === 'string') return read.wrong(body)
  const { parseResourceObject } = await import('../../endpoints/resources.ts')
  const [fault] = body === undefined ? [] : parseResourceObject(name, body, 'resource').faults
  if (fault !== undefined) return read.wrong(`resource: ${fault.message}`)
  const client = await openClient(read)
  const answer = await change(client, name, body)
  if (answer === undefined) {
    output.stderr(`namegate: no resource is named ${JSON.stringify(name)}\n`)
    return EXIT_NEGATIVE
  }
  output.stdout(read.texts.has('output') ? toJson(answer) : formatResult(act, name, answer))
  return EXIT_OK
}

/** Sets the resource, or removes it if there is no body. Returns undefined if there is nothing to remove. */
async function change(
  client: Client,
  name: string,
  body: ResourceBody | undefined,
): Promise<ResourceChange | undefined> {
  const path = { name }
  if (body !== undefined) {
    return (await client.request('PUT /v1/resources/{name}', { path, body })).value
  }
  try {
    return (await client.request('DELETE /v1/resources/{name}', { path })).value
  } catch (error) {
    if (isStatus(error, 404)) return undefined
    throw error
  }
}

/** Returns the body of the request that the options describe. Returns the fault as text if the options are wrong. */
function bodyOf({ texts, lists }: ParsedArguments): ResourceBody | string {
  const addresses = lists.get('address') ?? []
  if (addresses.length === 0) return 'resource set needs --address'
  const labels = pairsOf('label', lists.get('label'))
  if (typeof labels === 'string') return labels
  const ports = pairsOf('port', lists.get('port'))
  if (typeof ports === 'string') return ports
  const ttl = texts.get('ttl')
  return { addresses, labels, ports, ...(ttl === undefined ? {} : { ttl }) }
}

function pairsOf(
  option: string,
  texts: readonly string[] = [],
): Readonly<Record<string, string>> | string {
  const pairs = new Map<string, string>()
  for (const text of texts) {
    const equals = text.indexOf('=')
    if (equals < 1) return `--${option}: found ${JSON.stringify(text)}, expected KEY=VALUE`
    const key = text.slice(0, equals)
    if (pairs.has(key)) return `--${option}: found ${key} twice`
    pairs.set(key, text.slice(equals + 1))
  }
  return Object.fromEntries(pairs)
}

function formatResult(
  act: 'set' | 'remove',
  name: string,
  { changed, expires, revision }: PartOf<ResourceChange>,
): string {
  const what = act === 'remove' ? 'removed' : changed === true ? 'set' : 'was so before'
  const until = typeof expires === 'string' ? `, until ${expires}` : ''
  return `${name}: ${what}${until}; in force with revision ${textOf(revision)}\n`
}
