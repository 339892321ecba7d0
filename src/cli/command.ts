// What every command of the command line shares: where it writes, its exit codes, and how its arguments are
// read. A command is a function of its arguments; it never ends the process and never writes elsewhere.

import { parseArgs, type ParseArgsConfig } from 'node:util'
import { messageOf } from '../core/errors.ts'
import { nearest } from '../core/did-you-mean.ts'

export interface CommandOutput {
  stdout(text: string): void
  stderr(text: string): void
}

export type Command = (args: readonly string[], output: CommandOutput) => number | Promise<number>

export const EXIT_OK = 0
/** A negative result: denied, differs, not ready, faults found. */
export const EXIT_NEGATIVE = 1
/** Wrong use, or input that a person must correct. */
export const EXIT_USAGE = 2
/** Could not be done: no daemon, no privilege, port taken, kernel refused. */
export const EXIT_UNAVAILABLE = 3

export type CommandOptions = NonNullable<ParseArgsConfig['options']>

export interface ParsedArguments {
  readonly positionals: readonly string[]
  /** Text options by name. */
  readonly texts: ReadonlyMap<string, string>
  /** Texts of options that may be given several times, by name. */
  readonly lists: ReadonlyMap<string, readonly string[]>
  /** Flags that were given. */
  readonly flags: ReadonlySet<string>
}

/** Options that every command takes. */
const COMMON: CommandOptions = {
  help: { type: 'boolean', short: 'h' },
  config: { type: 'string' },
  output: { type: 'string', short: 'o' },
}

/**
 * Reads arguments. Writes help (exit code 0) or what was wrong (exit code 2) itself and gives the exit code
 * then. `-o` takes `json` only.
 */
export function readArguments(
  args: readonly string[],
  help: string,
  output: CommandOutput,
  options: CommandOptions = {},
): ParsedArguments | number {
  try {
    const { positionals, values } = parseArgs({
      args: [...args],
      options: { ...COMMON, ...options },
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
      output.stdout(help)
      return EXIT_OK
    }
    const format = texts.get('output')
    if (format === undefined || format === 'json') return { positionals, texts, lists, flags }
    return usageError(`-o: found ${format}, expected json`, help, output)
  } catch (error) {
    const reason = messageOf(error).split('. ')[0] ?? ''
    return usageError(
      reason + nearestOption(reason, [...Object.keys(COMMON), ...Object.keys(options)]),
      help,
      output,
    )
  }
}

/** `; did you mean --follow?` for an unknown option that is nearly a known one. */
function nearestOption(reason: string, known: readonly string[]): string {
  const [, unknown] = /^Unknown option '--([^']+)'/.exec(reason) ?? []
  const meant = unknown === undefined ? undefined : nearest(unknown, known)
  return meant === undefined ? '' : `; did you mean --${meant}?`
}

/** Says what was wrong and how the command is used; exit code 2. */
export function usageError(reason: string, help: string, output: CommandOutput): number {
  const usage = help.split('\n').find((line) => line.startsWith('Usage:')) ?? ''
  output.stderr(`namegate: ${reason}\n${usage}\n`)
  return EXIT_USAGE
}

/** JSON as every reading command prints it. */
export function toJson(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`
}
