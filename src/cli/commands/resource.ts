// `namegate resource set|remove`: labels for addresses that no endpoint has, at run time.

import type { ParsedArguments } from '../command.ts'
import { openClient } from '../client.ts'
import {
  EXIT_NEGATIVE,
  EXIT_OK,
  readArguments,
  toJson,
  usageError,
  type CommandOutput,
} from '../command.ts'
import { fieldsOf, textOf } from '../fields.ts'

const HELP = `Usage: namegate resource set NAME --address ADDRESS... [--label KEY=VALUE...] [--port NAME=PORT/PROTOCOL...] [--ttl TIME]
       namegate resource remove NAME

An external resource is labels for addresses or prefixes with no endpoint behind them: policies reach it by toEndpoints
and toEntities. The command ends when the datapath enforces it. It stays over restarts, until it is removed or its
time is over; setting it again begins its time anew. Resources that a file has are changed there.

Options:
  --address ...     an address or prefix; may be repeated
  --label ...       a label; may be repeated
  --port ...        a name that policies may use for a port, such as web=8080/TCP; may be repeated
  --ttl TIME        for so long, such as 30s or 12h; without it until it is removed
  -o json           what was done, as one JSON object on stdout
  --config FILE     config that names the daemon's socket
  --socket PATH     the daemon's socket
  -h, --help        this text

Exit codes: 0 ok, 1 remove: there is none of the name, 2 wrong use or invalid, 3 no daemon, or it cannot be done.

Examples:
  namegate resource set billing-db --address 192.0.2.10 --label app=billing-db --label k8s:team=billing
  namegate resource set build-7 --address 2001:db8:7::/64 --label app=build --ttl 2h
  namegate resource remove billing-db
`

export async function resourceCommand(
  args: readonly string[],
  output: CommandOutput,
): Promise<number> {
  const many = { type: 'string', multiple: true } as const
  const options = { address: many, label: many, port: many, ttl: { type: 'string' } } as const
  const read = readArguments(args, HELP, output, { ...options, socket: { type: 'string' } })
  if (typeof read === 'number') return read
  const [act, name, ...rest] = read.positionals
  if ((act !== 'set' && act !== 'remove') || name === undefined || rest.length > 0) {
    return usageError('resource needs set or remove, and a name', HELP, output)
  }
  const given = Object.keys(options).filter((key) => read.texts.has(key) || read.lists.has(key))
  if (act === 'remove' && given.length > 0) {
    return usageError(`resource remove takes no --${given[0] ?? ''}`, HELP, output)
  }
  const body = act === 'set' ? bodyOf(read) : undefined
  if (typeof body === 'string') return usageError(body, HELP, output)
  const { parseResourceObject } = await import('../../endpoints/resources.ts')
  const [fault] = body === undefined ? [] : parseResourceObject(name, body, 'resource').faults
  if (fault !== undefined) return usageError(`resource: ${fault.message}`, HELP, output)
  const client = await openClient(read)
  const path = `/v1/resources/${encodeURIComponent(name)}`
  const found = await client.change(path, body)
  if (found === undefined) {
    output.stderr(`namegate: no resource is named ${JSON.stringify(name)}\n`)
    return EXIT_NEGATIVE
  }
  const answer = fieldsOf(found)
  output.stdout(read.texts.has('output') ? toJson(answer) : formatResult(act, name, answer))
  return EXIT_OK
}

/** The body that the options say, or what is wrong with them. */
function bodyOf({ texts, lists }: ParsedArguments): object | string {
  const addresses = lists.get('address') ?? []
  if (addresses.length === 0) return 'resource set needs --address'
  const labels = pairsOf('label', lists.get('label'))
  if (typeof labels === 'string') return labels
  const ports = pairsOf('port', lists.get('port'))
  if (typeof ports === 'string') return ports
  const ttl = texts.get('ttl')
  return { addresses, labels, ports, ...(ttl === undefined ? {} : { ttl }) }
}

function pairsOf(option: string, texts: readonly string[] = []): object | string {
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
  { changed, expires, revision }: Readonly<Record<string, unknown>>,
): string {
  const what = act === 'remove' ? 'removed' : changed === true ? 'set' : 'was so before'
  const until = typeof expires === 'string' ? `, until ${expires}` : ''
  return `${name}: ${what}${until}; in force with revision ${textOf(revision)}\n`
}
