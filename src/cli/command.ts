// This file defines a command as one object with texts, options, and a function `run`. The file reference.ts makes help, completion, the
// man page and the README's table from these objects. The file commands.ts finds an object by its name. `run` returns the exit code. `run`
// never ends the process, and writes only to `output`.

import { parseArgs, type ParseArgsConfig } from 'node:util'
import type { Fault } from '../core/errors.ts'
import { nearest } from '../core/did-you-mean.ts'
import { helpOf, usageOf, type CommandTexts } from './reference.ts'

/** Where a command writes its results (stdout) and its messages (stderr). */
export interface CommandOutput {
  stdout(text: string): void
  stderr(text: string): void
  /** The terminal that shows stdout. Undefined if stdout is no terminal. */
  readonly terminal?: Terminal | undefined
  /**
   * For a command that must remove what it has set up. Calls `run` when the reader of stdout or stderr has ended. The command then ends
   * itself, and no failed write ends the process.
   */
  readonly onNoReader?: (run: () => void) => void
}

/** A terminal, for commands that fit their text to it or write the same place again. */
export interface Terminal {
  readonly columns: number
  readonly rows: number
  /** Calls `run` when the user ends the command, such as with Ctrl-C. The command then ends itself. */
  onInterrupt(run: () => void): void
}

/** A command as main.ts calls it. It receives arguments and returns the exit code. */
export type Command = (args: readonly string[], output: CommandOutput) => number | Promise<number>

export const EXIT_OK = 0
/** The command worked, and the result is negative: denied, differs, not ready, faults found. */
export const EXIT_NEGATIVE = 1
/** The command was used in a wrong way, or its input is invalid. */
export const EXIT_USAGE = 2
/** The command could not do its work: no daemon, no privilege, port taken, kernel refused. */
export const EXIT_UNAVAILABLE = 3

export interface ParsedCommand extends CommandTexts {
  /** Verbs with definitions of their own, such as `policy check`. */
  readonly verbs?: readonly ParsedCommand[]
  readonly run: (read: ParsedArguments, output: CommandOutput) => number | Promise<number>
}

/** A command that reads its arguments itself, such as `exec`, which gives some of them to the command that it runs. */
export interface RawCommand extends CommandTexts {
  readonly runRaw: Command
}

export type CommandSpec = ParsedCommand | RawCommand

/** The arguments of a command after its options were read. Keys are the names of options without `--`. */
export interface ParsedArguments {
  readonly positionals: readonly string[]
  /** Options with a value. */
  readonly texts: ReadonlyMap<string, string>
  /** Options that can be given several times. */
  readonly lists: ReadonlyMap<string, readonly string[]>
  /** Names of the flags that were given. */
  readonly flags: ReadonlySet<string>
  /** All options in the order in which they were given. A flag has the value undefined. */
  readonly given: readonly GivenOption[]
  /** Writes the reason and the usage of the command. Returns exit code 2. */
  readonly wrong: (reason: string) => number
}

export interface GivenOption {
  readonly name: string
  readonly value: string | undefined
}

/** Options that every command accepts. */
const COMMON: NonNullable<ParseArgsConfig['options']> = {
  help: { type: 'boolean', short: 'h' },
  config: { type: 'string' },
  output: { type: 'string', short: 'o' },
}
const JSON_ONLY: readonly string[] = ['json']
/** The values of common options, for commands that do not describe these options themselves. */
const VALUE_FORMS: ReadonlyMap<string, string> = new Map([
  ['config', 'FILE'],
  ['output', 'json'],
])

/** Returns the command as a function. The function also writes the command's help, and reports wrong options. */
export function commandOf(spec: CommandSpec): Command {
  if ('runRaw' in spec) return spec.runRaw
  return async (args, output) => {
    const read = readArguments(args, spec, output)
    return typeof read === 'number' ? read : await spec.run(read, output)
  }
}

/**
 * Reads arguments. For `--help` it writes the help and returns exit code 0. For wrong use it writes the reason and returns exit code 2.
 * The values of `-o` are `json`, or those that the command lists.
 */
function readArguments(
  args: readonly string[],
  spec: CommandTexts,
  output: CommandOutput,
): ParsedArguments | number {
  const wrong = (reason: string): number => usageError(reason, spec, output)
  const options = { ...COMMON, ...parseOptionsOf(spec) }
  const { positionals, values, tokens } = parseArgs({
    args: [...args],
    options,
    allowPositionals: true,
    strict: false,
    tokens: true,
  })
  const written = tokens.flatMap((token) => (token.kind === 'option' ? [token] : []))
  for (const option of written) {
    const fault = optionFault(option, options, spec)
    if (fault !== undefined) return wrong(fault)
  }
  const texts = new Map<string, string>()
  const lists = new Map<string, readonly string[]>()
  const flags = new Set<string>()
  for (const [name, value] of Object.entries(values)) {
    if (typeof value === 'string') texts.set(name, value)
    else if (value === true) flags.add(name)
    else if (Array.isArray(value) && value[0] !== true) lists.set(name, value.map(String))
  }
  if (flags.has('help')) {
    output.stdout(helpOf(spec))
    return EXIT_OK
  }
  const given = written.map(({ name, value }) => ({ name, value }))
  const format = texts.get('output')
  const formats = spec.options['output']?.value?.split('|') ?? JSON_ONLY
  if (format === undefined || formats.includes(format)) {
    const hint = nearestWord(positionals, spec)
    return { positionals, texts, lists, flags, given, wrong: (reason) => wrong(reason + hint) }
  }
  return wrong(`-o: found ${format}, expected ${formats.join(', ')}`)
}

/** An option of the command line, as `parseArgs` reads it. */
interface WrittenOption extends GivenOption {
  /** The option as it was written, with its dashes. */
  readonly rawName: string
  /** True for `--name=value`. */
  readonly inlineValue?: boolean | undefined
}

/** Returns why the option is wrong: it is unknown, its value is missing or empty, or it takes no value. Undefined if it is right. */
function optionFault(
  { name, rawName, value, inlineValue }: WrittenOption,
  known: NonNullable<ParseArgsConfig['options']>,
  spec: CommandTexts,
): string | undefined {
  const type = Object.hasOwn(known, name) ? known[name]?.type : undefined
  if (type === undefined) {
    const hint = rawName.startsWith('--') ? nearestOption(name, Object.keys(known)) : ''
    return `unknown option ${JSON.stringify(rawName)}${hint}`
  }
  if (type === 'boolean') {
    return value === undefined ? undefined : `${rawName} takes no value: write ${rawName} alone`
  }
  const own = spec.options[name]
  const form = own?.value ?? VALUE_FORMS.get(name) ?? 'VALUE'
  if (value === undefined) {
    const about = own === undefined ? '' : ` (${own.about.replaceAll('\n', ' ')})`
    return `${rawName} needs a value: write ${rawName} ${form}${about}`
  }
  // An unset variable in quotes makes an empty value. Without this check, the command acts on its defaults.
  if (value === '') {
    return `${rawName} needs a value, found an empty one: write ${rawName} ${form}`
  }
  // The next word can be a value that begins with a dash, or an option whose predecessor lacks its value.
  if (inlineValue !== true && /^-./s.test(value)) {
    return `${rawName} needs a value, found ${value}: write ${rawName} ${form}, or --${name}=${value} if this is the value`
  }
  return undefined
}

function parseOptionsOf({ options }: CommandTexts): NonNullable<ParseArgsConfig['options']> {
  return Object.fromEntries(
    Object.entries(options).map(([name, { kind, short, isRepeated }]) => [
      name,
      {
        type: kind === 'flag' ? ('boolean' as const) : ('string' as const),
        multiple: kind === 'list' || isRepeated === true,
        ...(short === undefined ? {} : { short }),
      },
    ]),
  )
}

/** Options that mean the same in different commands. */
const SAME: readonly (readonly string[])[] = [
  ['as', 'endpoint', 'netns'],
  ['selector', 'labels'],
  ['server', 'upstream'],
  ['follow', 'watch'],
  ['since', 'window'],
  ['verdict', 'kind'],
]

/** Returns `; did you mean off?` if the first argument is no word of the command, but resembles one, else an empty text. */
function nearestWord(
  [word]: readonly string[],
  { words = [], verbs = [], name }: CommandTexts,
): string {
  const known = [...words, ...verbs.map((verb) => verb.name.slice(name.length + 1))]
  if (word === undefined || known.includes(word)) return ''
  const meant = nearest(word, known)
  return meant === undefined ? '' : `; did you mean ${meant}?`
}

/** Returns `; did you mean --follow?` for an unknown option that resembles a known option or means the same, else an empty text. */
export function nearestOption(unknown: string, known: readonly string[]): string {
  const [, negated = ''] = /^(?:no|not)-(.+)$/.exec(unknown) ?? []
  if (known.includes('not') && known.includes(negated)) return `; did you mean --not --${negated}?`
  const same = SAME.find((names) => names.includes(unknown)) ?? []
  const meant = same.find((name) => known.includes(name)) ?? nearest(unknown, known)
  return meant === undefined ? '' : `; did you mean --${meant}?`
}

/** Writes the reason and the usage of the command. Returns exit code 2. */
export function usageError(reason: string, spec: CommandTexts, output: CommandOutput): number {
  output.stderr(`namegate: ${reason}\n${usageOf(spec)}\n`)
  return EXIT_USAGE
}

/** Returns faults as JSON, as every command with `-o json` that checks files prints them. */
export function faultsJson(faults: readonly Fault[]): string {
  return toJson(faults.map(({ position, message }) => ({ ...position, message })))
}

/** Returns JSON as every command with `-o json` prints it. */
export function toJson(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`
}
