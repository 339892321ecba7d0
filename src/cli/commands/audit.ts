// `namegate audit on|off|reset`: at run time, for the node, one endpoint or those with certain labels.

import { openClient } from '../client.ts'
import { EXIT_OK, toJson, type CommandOutput, type ParsedArguments } from '../command.ts'
import { fieldsOf, listOf, textOf } from '../fields.ts'

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

export async function runAudit(read: ParsedArguments, output: CommandOutput): Promise<number> {
  const [setting, ...rest] = read.positionals
  const on = SETTINGS.get(setting)
  if (setting === undefined || on === undefined || rest.length > 0) {
    return read.wrong('audit needs on, off or reset')
  }
  const scope = scopeOf(read)
  if (typeof scope === 'string') return read.wrong(scope)
  if (scope.scope === 'all' && on !== null) return read.wrong('--all is for reset')
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
