// `runPolicySuggest` runs `namegate policy suggest`. The command suggests policies from the recorded flows of one or more nodes.

import { existsSync } from 'node:fs'
import type { Client } from '../../client/client.ts'
import type { Status } from '../../client/api-types.ts'
import { InvalidInputError, type Fault } from '../../core/errors.ts'
import { parseAddress } from '../../core/ip.ts'
import type { Config } from '../../config/config.ts'
import { Guard } from '../../names/guard.ts'
import { IdentityLabels } from '../../policy/identity-labels.ts'
import { labelKeyFault, labelValueFault } from '../../policy/match/labels.ts'
import { stillDenied } from '../../suggest/denied.ts'
import { LabelGroups, type Group } from '../../suggest/label-groups.ts'
import type { DeniedFlow } from '../../suggest/needs.ts'
import { isEmpty, suggest, type Suggestion } from '../../suggest/suggest.ts'
import { isStatus, openClient } from '../client.ts'
import { namedConfigFile, readConfig } from '../config-file.ts'
import { EXIT_OK, type CommandOutput, type ParsedArguments } from '../command.ts'
import type { PartOf } from '../fields.ts'
import { shellWord } from '../shell-word.ts'
import { judgesOf, WANTS_ALL } from './judge-needs.ts'
import { readFlowFiles, readFlows, type GoodFlowLine } from './read-flows.ts'
import { readWorld } from './read-world.ts'
import { printSuggestions, type Suggested } from './print-suggestions.ts'

/** The default of --collapse. From this number of siblings on, the list of names would be too long to read. */
const COLLAPSE_FROM = 64
const WITHOUT_POLICIES =
  'the policies of this daemon are not known (give --config or --policies): what they allow already is suggested, too'
const LABELS_FORM = 'write --labels KEY=VALUE,...; KEY alone has the empty value'
/** How many names a note lists. */
const SHOWN_MAX = 8
const ASKED_ONLY =
  'asked, but the flows have no connection to them, so the suggestion lets them be asked only: connections are recorded only in audit, and only if no policy allows them'
const FORMATS = ['policy', 'allow-list'] as const

export async function runPolicySuggest(
  read: ParsedArguments,
  output: CommandOutput,
): Promise<number> {
  const wrong = (reason: string): number => read.wrong(reason)
  const { texts, lists, positionals } = read
  const files = [...(lists.get('flows') ?? []), ...positionals]
  const only = labelsIn(texts.get('labels'))
  if (typeof only === 'string') return wrong(`--labels: ${only}`)
  const collapse = texts.get('collapse')
  if (collapse !== undefined && !/^(?:[2-9]|[1-9]\d{1,8})$/.test(collapse)) {
    return wrong(`--collapse: found ${JSON.stringify(collapse)}, expected a number from 2 on`)
  }
  const format = FORMATS.find((each) => each === (texts.get('format') ?? 'policy'))
  if (format === undefined) {
    return wrong(
      `--format: found ${JSON.stringify(texts.get('format'))}, expected policy or allow-list`,
    )
  }
  if (texts.has('output') && texts.has('format')) {
    return wrong('--format has no effect with -o json: give one of them')
  }
  // Checks the files that the options name, before the daemon is asked.
  const given = readWorld(read, lists.get('policies') ?? [])
  if (typeof given === 'string') return wrong(given)
  const client = files.length > 0 ? undefined : await openClient(read)
  const own = client === undefined ? read : await withDaemonsConfig(read, client)
  const config = await readConfig(own.texts.get('config'))
  const paths = policiesOf(own, config, files.length > 0)
  const world = readWorld(own, paths)
  if (typeof world === 'string') return wrong(world)
  const groups = new LabelGroups(new IdentityLabels(config.endpoints.identityLabels), only)
  const notes =
    client === undefined ? await readFiles(files, groups, output) : await readDaemon(client, groups)
  const { nodeAddresses } = world
  const { protectedPrefixes } = config.dns
  const guard = new Guard({ nodeAddresses, protectedPrefixes })
  const needs = groups.groups.map((each) => each.needs)
  const judges = paths.length === 0 ? WANTS_ALL : judgesOf({ ...world, config }, needs)
  const options = {
    ...judges,
    collapseFrom: collapse === undefined ? COLLAPSE_FROM : Number(collapse),
    nameless: 'prefix',
    isGuarded: (address: string) => isGuarded(guard, address),
  } as const
  const all = groups.groups.map((group) => ({ group, suggestion: suggest(group.needs, options) }))
  const isBlind = files.length === 0 && paths.length === 0
  const blind = isBlind ? [WITHOUT_POLICIES] : []
  const denied = groups.groups.flatMap((group) => stillDenied(group.needs, judges))
  const selector = only && [...only.matchLabels].map((pair) => pair.join('=')).join(',')
  const more = [...deniedNotes(denied, selector), ...notesOf(groups, all, selector)]
  for (const note of [...blind, ...notes, ...more]) output.stderr(`namegate: ${note}\n`)
  const found = all.filter(canBeSelected).filter(({ suggestion }) => !isEmpty(suggestion))
  if (format === 'allow-list' && found.length > 1) {
    return wrong('an allow-list is for one kind of endpoints: give --labels')
  }
  printSuggestions(found, texts.has('output') ? 'json' : format, output)
  return EXIT_OK
}

/**
 * Returns the same arguments with the configuration of the daemon whose flows are read, unless --config or the environment names one.
 * Without a readable configuration, for example of a daemon on another host, returns the arguments as they are.
 */
async function withDaemonsConfig(read: ParsedArguments, client: Client): Promise<ParsedArguments> {
  if (namedConfigFile(read.texts.get('config')) !== undefined) return read
  const { config }: PartOf<Status> = (await client.request('GET /v1/status')).value
  if (typeof config !== 'string' || !existsSync(config)) return read
  return { ...read, texts: new Map([...read.texts, ['config', config]]) }
}

/** Returns the paths of the policies that are in force: of --policies, else of the configuration if one is named. */
function policiesOf(
  { lists, texts }: ParsedArguments,
  config: Config,
  hasFiles: boolean,
): readonly string[] {
  const named = lists.get('policies') ?? []
  const isKnown = namedConfigFile(texts.get('config')) !== undefined
  if (named.length > 0 || hasFiles || !isKnown) return named
  return config.policies.paths.map(({ path }) => path)
}

async function readFiles(
  files: readonly string[],
  groups: LabelGroups,
  output: CommandOutput,
): Promise<readonly string[]> {
  const waits = (file: string): void =>
    output.stderr(`namegate: ${file}: still empty: waiting for a program that writes to it\n`)
  return await readFlowFiles(files, (line) => groups.add(line), waits)
}

/** Reads the flows of the daemon into `groups`. Returns no notes, because every line of a daemon is complete. */
async function readDaemon(client: Client, groups: LabelGroups): Promise<readonly string[]> {
  const faults: Fault[] = []
  const take = (line: GoodFlowLine): void => groups.add(line)
  try {
    await readFlows(client.text('GET /v1/flows/kept'), client.socket, take, faults)
  } catch (error) {
    // A daemon that keeps no flows on disk still has the latest flows in memory.
    if (!isStatus(error, 409)) throw error
    await readFlows(client.text('GET /v1/flows'), client.socket, take, faults)
  }
  if (faults.length > 0) throw new InvalidInputError(faults)
  return []
}

/** Returns the options of `audit` for the endpoints whose flows were denied. */
function auditScope(labels: string | undefined, endpoints: readonly string[]): string {
  if (labels !== undefined) return `--selector ${shellWord(labels)}`
  const [first, ...more] = endpoints.toSorted()
  if (first === undefined) return '--node'
  if (more.length === 0) return `--endpoint ${shellWord(first)}`
  return `--endpoint NAME, for each of ${[first, ...more].join(', ')}`
}

/** Returns a note about flows that policy denied, with the command that has them recorded. */
function deniedNotes(denied: readonly DeniedFlow[], labels: string | undefined): readonly string[] {
  const count = denied.reduce((sum, each) => sum + each.count, 0)
  if (count === 0) return []
  const what = new Set(denied.map((each) => each.what))
  const endpoints = new Set(denied.flatMap((each) => [...each.endpoints]))
  const audit = `namegate audit on ${auditScope(labels, [...endpoints].slice(0, SHOWN_MAX))}`
  const flows =
    count === 1 ? '1 flow that policy denied is' : `${count} flows that policy denied are`
  const shown = [...what].slice(0, SHOWN_MAX).join(', ')
  return [`${flows} not suggested: ${shown}; to suggest them, record them in audit (${audit})`]
}

/** Returns notes about flows for which there is no rule. */
function notesOf(
  groups: LabelGroups,
  all: readonly Suggested[],
  selector: string | undefined,
): readonly string[] {
  const notes: string[] = []
  const { lost, others } = groups
  const note = (count: number, one: string, many: string): void => {
    if (count > 0) notes.push(count === 1 ? `1 ${one}` : `${count} ${many}`)
  }
  note(
    lost,
    'flow was not recorded: something may be missing',
    'flows were not recorded: something may be missing',
  )
  if (selector !== undefined && all.length === 0) {
    notes.push(`no flow is about an endpoint with ${selector}: ${LABELS_FORM}`)
  }
  note(others, 'line is about other endpoints', 'lines are about other endpoints')
  for (const { group, suggestion } of all) {
    if (!canBeSelected({ group }) && !isEmpty(suggestion)) {
      const rules = [suggestion.asked, ...suggestion.rules]
      const who = new Set(rules.flatMap((each) => [...(each?.evidence.endpoints ?? [])]))
      notes.push(`no policy can select endpoints without labels: ${[...who].sort().join(', ')}`)
    }
  }
  const unreached = all.flatMap(({ suggestion }) => neverReached(suggestion))
  if (unreached.length > 0) {
    const shown = unreached.slice(0, SHOWN_MAX)
    const more = unreached.length - shown.length
    notes.push(`${shown.join(', ')}${more > 0 ? ` and ${more} more` : ''}: ${ASKED_ONLY}`)
  }
  if (all.every(({ suggestion }) => isEmpty(suggestion))) notes.push('nothing to suggest')
  return notes
}

/** Returns the names that the suggestion lets endpoints ask, and to which no rule of it opens a connection. */
function neverReached({ asked, rules }: Suggestion): readonly string[] {
  const reached = new Set(
    rules.flatMap(({ peer }) => (peer.kind === 'names' ? peer.names.texts : [])),
  )
  return (asked?.names.texts ?? []).filter((name) => !reached.has(name))
}

/** Returns false for endpoints without labels, because a policy without labels would select every endpoint. */
function canBeSelected({ group }: { readonly group: Group }): boolean {
  return group.selector.size > 0
}

function isGuarded(guard: Guard, text: string): boolean {
  const address = parseAddress(text)
  return address !== undefined && guard.isGuarded(address.family, address.octets, 0)
}

/** Returns the labels of --labels as a selector. Undefined, for all endpoints, without the option. Returns the fault as text. */
function labelsIn(
  text: string | undefined,
): { readonly matchLabels: ReadonlyMap<string, string> } | undefined | string {
  if (text === undefined) return undefined
  const matchLabels = new Map<string, string>()
  for (const part of text.split(',').map((each) => each.trim())) {
    if (part === '') continue
    const equals = part.indexOf('=')
    const [key, value] = equals < 0 ? [part, ''] : [part.slice(0, equals), part.slice(equals + 1)]
    const fault = labelKeyFault(key) ?? labelValueFault(value)
    if (fault !== undefined) return `found ${JSON.stringify(part)}, expected ${fault}`
    matchLabels.set(key, value)
  }
  return matchLabels.size === 0 ? 'found no label, expected KEY=VALUE,...' : { matchLabels }
}
