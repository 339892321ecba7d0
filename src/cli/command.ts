// The form of a command: one object with its texts, its options and what it runs. Help, completion, the man page and the
// README's table are made from these objects (reference.ts); commands.ts finds one by its name. `run` returns the exit
// code; it never ends the process and writes to `output` only.

import { parseArgs, type ParseArgsConfig } from 'node:util'
import { messageOf } from '../core/errors.ts'
import { nearest } from '../core/did-you-mean.ts'
import { helpOf, usageOf, type CommandTexts } from './reference.ts'

export interface CommandOutput {
  stdout(text: string): void
  stderr(text: string): void
}

/** A command as main.ts calls it: arguments in, exit code out. */
export type Command = (args: readonly string[], output: CommandOutput) => number | Promise<number>

export const EXIT_OK = 0
/** A negative result: denied, differs, not ready, faults found. */
export const EXIT_NEGATIVE = 1
/** Wrong use, or input that a person must correct. */
export const EXIT_USAGE = 2
/** Could not be done: no daemon, no privilege, port taken, kernel refused. */
export const EXIT_UNAVAILABLE = 3

export interface ParsedCommand extends CommandTexts {
  /** Verbs that are commands themselves. */
  readonly verbs?: readonly ParsedCommand[]
  readonly run: (read: ParsedArguments, output: CommandOutput) => number | Promise<number>
}

/** A command whose arguments are not all its own, such as `exec`. */
export interface RawCommand extends CommandTexts {
  readonly runRaw: Command
}

export type CommandSpec = ParsedCommand | RawCommand

export interface ParsedArguments {
  readonly positionals: readonly string[]
  /** Options with a value. */
  readonly texts: ReadonlyMap<string, string>
  /** Options that may be given several times. */
  readonly lists: ReadonlyMap<string, readonly string[]>
  /** Flags that were given. */
  readonly flags: ReadonlySet<string>
  /** Writes what was wrong and how the command is used; returns exit code 2. */
  readonly wrong: (reason: string) => number
}

/** Options that every command takes. */
const COMMON: NonNullable<ParseArgsConfig['options']> = {
  help: { type: 'boolean', short: 'h' },
  config: { type: 'string' },
  output: { type: 'string', short: 'o' },
}

/** The command as a function. It writes its help and wrong use of options itself. */
export function commandOf(spec: CommandSpec): Command {
  if ('runRaw' in spec) return spec.runRaw
  return async (args, output) => {
    const read = readArguments(args, spec, output)
    return typeof read === 'number' ? read : await spec.run(read, output)
  }
}

/**
 * Reads arguments. Writes help (exit code 0) or what was wrong (exit code 2) itself and returns the exit code
 * then. `-o` takes `json` only.
 */
function readArguments(
  args: readonly string[],
  spec: CommandTexts,
  output: CommandOutput,
): ParsedArguments | number {
  const wrong = (reason: string): number => usageError(reason, spec, output)
  const options = { ...COMMON, ...parseOptionsOf(spec) }
  try {
    const { positionals, values } = parseArgs({
      args: [...args],
      options,
      allowPositionals: true,
      strict: true,
    })
    const texts = new Map<string, string>()
    const lists = new Map<string, readonly string[]>()
    const flags = new Set<string>()
    for (const [name, value] of Object.entries(values)) {
      if (typeof value === 'string') texts.set(name, value)
      else if (value === true) flags.add(name)
      else if (Array.isArray(value)) lists.set(name, value.map(String))
    }
    if (flags.has('help')) {
      output.stdout(helpOf(spec))
      return EXIT_OK
    }
    const format = texts.get('output')
    if (format === undefined || format === 'json')
      return { positionals, texts, lists, flags, wrong }
    return wrong(`-o: found ${format}, expected json`)
  } catch (error) {
    const reason = messageOf(error).split('. ')[0] ?? ''
    return wrong(reason + nearestOption(reason, Object.keys(options)))
  }
}

function parseOptionsOf({ options }: CommandTexts): NonNullable<ParseArgsConfig['options']> {
  return Object.fromEntries(
    Object.entries(options).map(([name, { kind, short }]) => [
      name,
      {
        type: kind === 'flag' ? ('boolean' as const) : ('string' as const),
        multiple: kind === 'list',
        ...(short === undefined ? {} : { short }),
      },
    ]),
  )
}

/** `; did you mean --follow?` for an unknown option that is nearly a known one. */
function nearestOption(reason: string, known: readonly string[]): string {
  const [, unknown] = /^Unknown option '--([^']+)'/.exec(reason) ?? []
  const meant = unknown === undefined ? undefined : nearest(unknown, known)
  return meant === undefined ? '' : `; did you mean --${meant}?`
}

/** Writes what was wrong and how the command is used; returns exit code 2. */
export function usageError(reason: string, spec: CommandTexts, output: CommandOutput): number {
  output.stderr(`namegate: ${reason}\n${usageOf(spec)}\n`)
  return EXIT_USAGE
}

/** JSON as every reading command prints it. */
export function toJson(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`
}
