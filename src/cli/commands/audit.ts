// `namegate audit on|off|reset`: at run time, for the node, one endpoint or those with certain labels.

import { openClient } from '../client.ts'
import {
  EXIT_OK,
  readArguments,
  toJson,
  usageError,
  type CommandOutput,
  type ParsedArguments,
} from '../command.ts'
import { fieldsOf, listOf, textOf } from '../fields.ts'

const HELP = `Usage: namegate audit on|off|reset --node | --endpoint NAME | --selector KEY=VALUE,... [--config FILE | --socket PATH]

In audit, what policy denies passes and is counted and reported ('namegate flows --verdict audit'). The setting holds
until it is changed, also over restarts, and wins over config and endpoints file; reset takes it back, so that these
decide again. A policy is audited by its annotation namegate.io/audit: "true". 'get endpoints' says what holds and why.

Options:
  --node            every endpoint of the node, also those that come later
  --endpoint NAME   one endpoint
  --selector ...    every endpoint with these labels, also those that come later
  --all             with reset: everything that was ever set
  -o json           what was set, as one JSON object on stdout
  --config FILE     config that names the daemon's socket
  --socket PATH     the daemon's socket
  -h, --help        this text

Exit codes: 0 ok, 2 wrong use or no such endpoint, 3 no daemon, or none that answers, or in force but not
kept: a restart would take it back.

Examples:
  namegate audit on --endpoint shop-1
  namegate audit off --selector app=shop,k8s:io.kubernetes.pod.namespace=prod
  namegate audit reset --all
`
const SETTINGS: ReadonlyMap<string | undefined, boolean | null> = new Map([
  ['on', true],
  ['off', false],
  ['reset', null],
])

/** What a setting of the whole node means for its endpoints. */
const NODE_MEANS: Readonly<Record<string, string>> = {
  on: 'of all its endpoints nothing is denied',
  off: 'what is audited by itself, endpoints or policies, stays so',
  reset: 'the config decides',
}

export async function auditCommand(
  args: readonly string[],
  output: CommandOutput,
): Promise<number> {
  const read = readArguments(args, HELP, output, {
    node: { type: 'boolean' },
    all: { type: 'boolean' },
    endpoint: { type: 'string' },
    selector: { type: 'string' },
    socket: { type: 'string' },
  })
  if (typeof read === 'number') return read
  const [setting, ...rest] = read.positionals
  const on = SETTINGS.get(setting)
  if (setting === undefined || on === undefined || rest.length > 0) {
    return usageError('audit needs on, off or reset', HELP, output)
  }
  const scope = scopeOf(read)
  if (typeof scope === 'string') return usageError(scope, HELP, output)
  if (scope.scope === 'all' && on !== null) return usageError('--all is for reset', HELP, output)
  const body = { ...scope, on }
  const answer = fieldsOf(await (await openClient(read)).get('/v1/audit', { body }))
  output.stdout(read.texts.has('output') ? toJson(answer) : formatResult(setting, scope, answer))
  return EXIT_OK
}

type Scope =
  | { readonly scope: 'node' | 'all' }
  | { readonly scope: 'endpoint'; readonly name: string }
  | { readonly scope: 'selector'; readonly matchLabels: Readonly<Record<string, string>> }

/** The scope that the options name, or what is wrong with them. */
function scopeOf({ texts, flags }: ParsedArguments): Scope | string {
  const endpoint = texts.get('endpoint')
  const selector = texts.get('selector')
  const whole = (['node', 'all'] as const).filter((flag) => flags.has(flag))
  const given = [endpoint, selector].filter((each) => each !== undefined)
  if (given.length + whole.length !== 1) {
    return 'audit takes one of --node, --endpoint and --selector (and --all with reset)'
  }
  if (endpoint !== undefined) return { scope: 'endpoint', name: endpoint }
  if (selector === undefined) return { scope: flags.has('all') ? 'all' : 'node' }
  const matchLabels = new Map<string, string>()
  for (const part of selector.split(',')) {
    const equals = part.indexOf('=')
    if (equals < 1) return `--selector: found ${JSON.stringify(part)}, expected KEY=VALUE,...`
    matchLabels.set(part.slice(0, equals), part.slice(equals + 1))
  }
  return { scope: 'selector', matchLabels: Object.fromEntries(matchLabels) }
}

function formatResult(
  setting: string,
  scope: Scope,
  answer: Readonly<Record<string, unknown>>,
): string {
  if (scope.scope === 'node') {
    const whom = `audit ${setting} for the node: ${NODE_MEANS[setting] ?? ''}`
    return `${whom}; mode is ${textOf(answer['mode'])}\n`
  }
  if (scope.scope === 'all') return `audit reset for all; mode is ${textOf(answer['mode'])}\n`
  const names = listOf(answer['endpoints']).map(textOf)
  const whom = names.length === 0 ? 'no endpoint that is known now' : names.join(', ')
  return `audit ${setting} for ${whom}\n`
}
