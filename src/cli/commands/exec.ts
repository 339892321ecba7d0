// `namegate exec`: runs a command that reaches the names it may use and nothing else. Reads the options, leaves the
// work to cli/exec/run.ts, and tells at the end what was asked and refused. What follows the command's name is the command's.

import { closeSync, openSync, writeFileSync } from 'node:fs'
import { messageOf, UnavailableError } from '../../core/errors.ts'
import { DURATION_FORM, LONGEST_MS, parseDuration } from '../../core/quantity.ts'
import {
  parseSocketAddress,
  SOCKET_ADDRESS_FORM,
  type SocketAddress,
} from '../../core/socket-address.ts'
import { parseAllow, type Allow } from '../../policy/allow-line.ts'
import { whyUrl } from '../../sandbox/url-as-name.ts'
import { parsePublish, PUBLISH_FORM, type Publish } from '../../sandbox/publish.ts'
import { suggestPolicy } from '../../sandbox/suggest.ts'
import { summaryOf, summaryRows, type Summary } from '../../sandbox/summary.ts'
import type { ExecOptions } from '../exec/run.ts'
import { EXIT_OK, EXIT_USAGE, usageError, type CommandOutput } from '../command.ts'
import { helpOf, type CommandTexts } from '../reference.ts'
import { formatTable } from '../table.ts'

const FLAGS = ['audit', 'json', 'quiet', 'help'] as const
const TEXTS = ['allow', 'policy', 'upstream', 'suggest', 'publish', 'uplink', 'grace'] as const
type Text = (typeof TEXTS)[number]

interface Given {
  readonly texts: ReadonlyMap<Text, readonly string[]>
  readonly flags: ReadonlySet<string>
  readonly command: readonly string[]
}

/** `texts`: its help and usage. */
export async function runExecCommand(
  args: readonly string[],
  texts: CommandTexts,
  output: CommandOutput,
): Promise<number> {
  const given = readExecArguments(args)
  if (typeof given === 'string') return usageError(given, texts, output)
  if (given.flags.has('help')) {
    output.stdout(helpOf(texts))
    return EXIT_OK
  }
  const options = optionsOf(given, output)
  if (typeof options === 'number') return options
  const [suggest] = given.texts.get('suggest') ?? []
  // A command may run for hours: what cannot be written afterwards is said before.
  if (suggest !== undefined) writeSuggestion(() => closeSync(openSync(suggest, 'a')))
  const { runExec } = await import('../exec/run.ts')
  const { code, recorder } = await runExec(options)
  if (recorder === undefined) return code
  if (suggest !== undefined) {
    writeSuggestion(() => writeFileSync(suggest, suggestPolicy(recorder)))
  }
  const summary = summaryOf(recorder)
  if (given.flags.has('json')) output.stderr(`${JSON.stringify({ code, ...summary })}\n`)
  else if (!given.flags.has('quiet')) output.stderr(formatSummary(summary))
  return code
}

/** Options up to the first word that is none: from there on everything is the command's. */
export function readExecArguments(args: readonly string[]): Given | string {
  const texts = new Map<Text, string[]>()
  const flags = new Set<string>()
  let at = 0
  for (; at < args.length; at++) {
    const word = args[at] ?? ''
    if (word === '--' || !word.startsWith('-') || word === '-') break
    const [, name = '', , inline] = /^--([^=]+)(=(.*))?$/s.exec(word) ?? []
    if (word === '-h') flags.add('help')
    else if (FLAGS.some((flag) => flag === name) && inline === undefined) flags.add(name)
    else {
      const known = TEXTS.find((each) => each === name)
      if (known === undefined) return `unknown option ${JSON.stringify(word)}`
      const value = inline ?? args[++at]
      if (value === undefined) return `--${name} needs a value`
      texts.set(known, [...(texts.get(known) ?? []), value])
    }
  }
  const command = args.slice(args[at] === '--' ? at + 1 : at)
  if (command.length === 0 && !flags.has('help')) return 'exec needs a COMMAND'
  for (const name of ['policy', 'suggest', 'uplink', 'grace'] as const) {
    if ((texts.get(name)?.length ?? 0) > 1) return `--${name} was given twice`
  }
  return { texts, flags, command }
}

function optionsOf({ texts, flags, command }: Given, output: CommandOutput): ExecOptions | number {
  const faults: string[] = []
  const readAll = <Value>(name: Text, read: (text: string) => Value | string): Value[] =>
    (texts.get(name) ?? []).flatMap((text) => {
      const value = read(text)
      if (typeof value !== 'string') return [value]
      faults.push(`--${name} ${JSON.stringify(text)}${value}`)
      return []
    })
  const allows = readAll<Allow>('allow', (text) => {
    const why = whyUrl(text)
    if (why !== undefined) return why
    const result = parseAllow(text)
    return result.kind === 'ok' ? result.allow : `, column ${result.column}: ${result.reason}`
  })
  const upstreams = readAll<SocketAddress>(
    'upstream',
    (text) => parseSocketAddress(text) ?? `: expected ${SOCKET_ADDRESS_FORM}`,
  )
  const publish = readAll<Publish>(
    'publish',
    (text) => parsePublish(text) ?? `: expected ${PUBLISH_FORM}`,
  )
  const [wanted] = texts.get('uplink') ?? []
  const uplink = (['pasta', 'slirp4netns', 'veth'] as const).find((each) => each === wanted)
  if (wanted !== undefined && uplink === undefined) {
    faults.push(`--uplink ${JSON.stringify(wanted)}: expected pasta, slirp4netns or veth`)
  }
  const [grace = '60s'] = texts.get('grace') ?? []
  const graceMs = parseDuration(grace)
  if (graceMs === undefined || graceMs > LONGEST_MS) {
    const most = graceMs === undefined ? '' : ', at most 3650d'
    faults.push(`--grace ${JSON.stringify(grace)}: expected ${DURATION_FORM}${most}`)
  }
  if (faults.length > 0 || graceMs === undefined) {
    output.stderr(faults.map((fault) => `namegate: ${fault}\n`).join(''))
    return EXIT_USAGE
  }
  const say = (text: string): void => output.stderr(`namegate: ${text}\n`)
  const note = flags.has('quiet') ? () => undefined : say
  const [policyFile] = texts.get('policy') ?? []
  const audit = flags.has('audit')
  const shared = { allows, upstreams, publish, uplink, policyFile, audit, graceMs, command }
  return { ...shared, say, note }
}

function writeSuggestion(write: () => void): void {
  try {
    write()
  } catch (error) {
    const reason = messageOf(error)
    throw new UnavailableError(`Cannot write the suggested policy: ${reason}: see --suggest`)
  }
}

function formatSummary(summary: Summary): string {
  const rows = summaryRows(summary)
  const lost = summary.lost > 0 ? `and ${summary.lost} more\n` : ''
  if (rows.length === 0) return ''
  return `namegate: names asked, connections refused\n${formatTable(['NAME', 'VERDICT', 'COUNT', 'WOULD ALLOW IT'], rows)}${lost}`
}
