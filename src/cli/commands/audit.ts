// `runAudit` runs `namegate audit on|off|reset`. The command sets audit at run time, for the node, for one endpoint, or for the endpoints
// with certain labels.

import type { AuditResult } from '../../client/api-types.ts'
import { openClient } from '../client.ts'
import { EXIT_OK, toJson, type CommandOutput, type ParsedArguments } from '../command.ts'
import { listOf, textOf, type PartOf } from '../fields.ts'

const SETTINGS: ReadonlyMap<string | undefined, boolean | null> = new Map([
  ['on', true],
  ['off', false],
  ['reset', null],
])

/** What each setting of the node means for its endpoints. */
const NODE_MEANS: Readonly<Record<string, string>> = {
  on: 'no endpoint is denied anything',
  off: 'endpoints and policies with their own audit setting keep it',
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
  const client = await openClient(read)
  const answer = (await client.request('POST /v1/audit', { body })).value
  output.stdout(read.texts.has('output') ? toJson(answer) : formatResult(setting, scope, answer))
  return EXIT_OK
}

type Scope =
  | { readonly scope: 'node' | 'all' }
  | { readonly scope: 'endpoint'; readonly name: string }
  | { readonly scope: 'selector'; readonly matchLabels: Readonly<Record<string, string>> }

/** Returns the scope that the options name. Returns the fault as text if the options are wrong. */
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

function formatResult(setting: string, scope: Scope, answer: PartOf<AuditResult>): string {
  if (scope.scope === 'node') {
    const whom = `audit ${setting} for the node: ${NODE_MEANS[setting] ?? ''}`
    return `${whom}; mode is ${textOf(answer.mode)}\n`
  }
  if (scope.scope === 'all') return `audit reset for all; mode is ${textOf(answer.mode)}\n`
  const names = listOf(answer.endpoints).map(textOf)
  const whom = names.length === 0 ? 'no endpoint that is known now' : names.join(', ')
  return `audit ${setting} for ${whom}\n`
}
