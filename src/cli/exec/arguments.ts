// `readExecArguments` separates the options of `namegate exec` from the command, and `optionsOf` reads the values of the options. The
// command begins at `--`, or at the first word that is not an option. `optionsOf` reports the faults of all values together.

import { formatAddress, parseAddress } from '../../core/ip.ts'
import { DURATION_FORM, LONGEST_MS, parseDuration } from '../../core/quantity.ts'
import { parseServer, SERVER_FORM, type SocketAddress } from '../../core/socket-address.ts'
import { parseAllow, type Allow } from '../../policy/allow-line.ts'
import type { Publish } from '../../sandbox/launcher.ts'
import { workingFolder } from '../../sandbox/caller.ts'
import { isKeepable, KEEP_FORM } from '../../sandbox/environment.ts'
import { fileViewFault, hiddenPath, type FileView } from '../../sandbox/file-view.ts'
import { EXIT_USAGE, nearestOption, type CommandOutput } from '../command.ts'
import type { ExecOptions } from './run.ts'

const FLAGS = [
  ...(['audit', 'env-clear', 'help', 'json', 'no-project', 'private-tmp', 'quiet'] as const),
  ...(['read-only', 'verbose'] as const),
]
/** Options with one value. */
const SINGLES = ['policy', 'suggest', 'uplink', 'grace', 'report', 'deny-response'] as const
const TEXTS = [...SINGLES, 'allow', 'upstream', 'publish', 'keep', 'hide'] as const
type Text = (typeof TEXTS)[number]

const DENY_RESPONSES = [{ response: 'refused' }, { response: 'nxdomain' }] as const
const PUBLISH_FORM = '[ADDRESS:]PORT[:INNER], such as 8080 or 127.0.0.1:8080:80'

/** The options and the command as they were given. */
export interface Given {
  readonly texts: ReadonlyMap<Text, readonly string[]>
  readonly flags: ReadonlySet<string>
  readonly command: readonly string[]
}

/** Separates the options from the command. Returns the reason of the failure as text if an option is wrong or the command is missing. */
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
      if (known === undefined) {
        return `unknown option ${JSON.stringify(word)}${nearestOption(name, [...TEXTS, ...FLAGS])}`
      }
      const value = inline ?? args[++at]
      if (value === undefined) return `--${name} needs a value`
      if (value === '') return `--${name} needs a value, found an empty one`
      // The value was forgotten: the next word is `--`, or another option.
      if (inline === undefined && /^-./.test(value)) {
        return `--${name} needs a value, found ${value}`
      }
      texts.set(known, [...(texts.get(known) ?? []), value])
    }
  }
  const command = args.slice(args[at] === '--' ? at + 1 : at)
  if (command.length === 0 && !flags.has('help')) return 'exec needs a COMMAND'
  for (const name of SINGLES) {
    if ((texts.get(name)?.length ?? 0) > 1) return `--${name} was given twice`
  }
  if (texts.has('keep') && !flags.has('env-clear')) return '--keep needs --env-clear'
  if (flags.has('verbose') && flags.has('quiet')) return '--verbose and --quiet exclude each other'
  return { texts, flags, command }
}

/** Reads the values of the options. If values are wrong, writes their faults to stderr and returns exit code 2. */
export function optionsOf(
  { texts, flags, command }: Given,
  output: CommandOutput,
): ExecOptions | number {
  const faults: string[] = []
  const readAll = <Value>(name: Text, read: (text: string) => Value | string): Value[] =>
    (texts.get(name) ?? []).flatMap((text) => {
      const value = read(text)
      if (typeof value !== 'string') return [value]
      faults.push(`--${name} ${JSON.stringify(text)}${value}`)
      return []
    })
  const allows = readAll<Allow>('allow', readAllow)
  const upstreams = readAll<SocketAddress>(
    'upstream',
    (text) => parseServer(text) ?? `: expected ${SERVER_FORM}`,
  )
  const publish = readAll<Publish>(
    'publish',
    (text) => parsePublish(text) ?? `: expected ${PUBLISH_FORM}`,
  )
  const keep = readAll<readonly [string]>('keep', (text) =>
    isKeepable(text) ? [text] : `: expected ${KEEP_FORM}`,
  ).flat()
  const view = readView({ texts, flags }, faults)
  const [{ response: denyResponse } = DENY_RESPONSES[0]] = readAll(
    'deny-response',
    (text) =>
      DENY_RESPONSES.find(({ response }) => response === text) ?? ': expected refused or nxdomain',
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
  const told = flags.has('verbose') ? say : undefined
  const [policyFile] = texts.get('policy') ?? []
  const audit = flags.has('audit')
  const shared = { allows, upstreams, publish, uplink, policyFile, audit, graceMs, command }
  const kept = flags.has('env-clear') ? keep : undefined
  const usesProject = !flags.has('no-project') && policyFile === undefined
  return { ...shared, denyResponse, view, kept, usesProject, say, note, told }
}

/** Returns the end of a fault for a text that is no target. */
function readAllow(text: string): Allow | string {
  const result = parseAllow(text)
  return result.kind === 'ok' ? result.allow : `, column ${result.column}: ${result.reason}`
}

/** Reads the options about files. Adds their faults to `faults`. */
function readView({ texts, flags }: Pick<Given, 'texts' | 'flags'>, faults: string[]): FileView {
  const hidden = (texts.get('hide') ?? []).flatMap((text) => {
    const path = hiddenPath(text)
    if (path === undefined) faults.push(`--hide ${JSON.stringify(text)}: there is no such path`)
    return path === undefined ? [] : [path]
  })
  const view = {
    hidden,
    isReadOnly: flags.has('read-only'),
    hasPrivateTmp: flags.has('private-tmp'),
    locked: [],
  }
  const fault = fileViewFault(view, workingFolder())
  if (fault !== undefined) faults.push(fault)
  return view
}

/** Reads the value of `--publish`, `[ADDRESS:]PORT[:INNER]`. Returns undefined if the text has another form. */
export function parsePublish(text: string): Publish | undefined {
  const match = /^(?:(\[[^\]]+\]|[0-9.]*\.[0-9.]*):)?([0-9]{1,5})(?::([0-9]{1,5}))?$/.exec(text)
  if (match === null) return undefined
  const [, host = '127.0.0.1', portText = '', innerText = portText] = match
  const address = parseAddress(host.replace(/^\[|\]$/g, ''))
  const [port, inner] = [Number(portText), Number(innerText)]
  if (address === undefined || !isPort(port) || !isPort(inner)) return undefined
  return { address: formatAddress(address.family, address.octets), port, inner }
}

function isPort(port: number): boolean {
  return port >= 1 && port <= 65_535
}
