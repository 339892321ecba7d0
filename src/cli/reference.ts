// This file defines the texts of a command, and makes pages from them: help, and the table of commands in the README. The file man.ts
// makes the man page. The functions have no side effects.

/** One option. A line break in `about` is a line break in the help. */
export interface CommandOption {
  readonly kind: 'flag' | 'text' | 'list'
  /** The word for the value in help, such as FILE. Undefined for a flag. */
  readonly value?: string
  readonly short?: string
  /** True for a flag that can be given several times. */
  readonly isRepeated?: boolean
  readonly about: string
}

/** The texts of a command or of a verb of a command. */
export interface CommandTexts {
  /** One word, or two for a verb of a command: `status`, `policy check`. */
  readonly name: string
  /** A few words about the command for lists of commands. They begin in lower case and end without a full stop. */
  readonly summary: string
  /** The forms of the command line, without `namegate`, and without the options that many commands share. */
  readonly synopsis: readonly string[]
  readonly about: string
  readonly options: Readonly<Record<string, CommandOption>>
  /** The meanings of the exit codes. Empty if the command has only 0 and the errors that every command has. */
  readonly exitCodes: string
  /** Examples, each one a line for a shell. */
  readonly examples: readonly string[]
  /** Words that can follow the command, for completion. */
  readonly words?: readonly string[]
  /** The path of the page that documents the command. */
  readonly docs?: string
  /** Verbs with texts of their own, such as `policy check`. */
  readonly verbs?: readonly CommandTexts[]
}

/** The least width of the column of options in help. */
const OPTION_WIDTH = 16

/** Returns the help of one command. */
export function helpOf(spec: CommandTexts): string {
  const verbs = spec.verbs === undefined ? '' : `${rowsOf(spec.verbs)}\n`
  const codes = spec.exitCodes === '' ? '' : `Exit codes: ${spec.exitCodes}\n\n`
  const examples = spec.examples.map((each) => `  ${each}\n`).join('')
  return `${usageOf(spec)}\n\n${verbs}${spec.about}\n\nOptions:\n${optionsText(spec)}\n${codes}Examples:\n${examples}`
}

/** Returns a text such as `Usage: namegate status [--ready] [-o json]`, with one line for each form. */
export function usageOf(spec: CommandTexts): string {
  const shared = sharedOptions(spec)
  return spec.synopsis
    .map((form, i) => `${i === 0 ? 'Usage: ' : '       '}namegate ${form}${shared}`)
    .join('\n')
}

/** Returns the list of all commands, for `namegate help`. */
export function listText(specs: readonly CommandTexts[]): string {
  return `namegate: DNS names in, kernel identities out, and no answer leaves before the kernel knows it.

Usage: namegate COMMAND [OPTIONS]

${rowsOf(specs)}
${SHARED_TEXT}

Examples:
  namegate run --config config/namegate.yaml
  namegate ask www.example.com
  namegate get endpoints
`
}

/** What all commands have in common. */
export const SHARED_TEXT = `Every command takes --help and --config FILE. Commands that print data take -o json, and commands that ask a daemon take
--socket PATH. 'namegate help COMMAND' prints the help of one command; 'namegate help --man' prints the man page.

Exit codes: 0 ok; 1 negative result (denied, differs, not ready, faults); 2 wrong use or invalid input; 3 could
not be done (no daemon, no privilege, port taken, kernel refused).`

/** Returns the table of commands in the README. */
export function readmeTable(specs: readonly CommandTexts[]): string {
  const rows = leavesOf(specs).map(({ name, summary, docs }) => {
    const title = `\`${name}\``
    return `| ${docs === undefined ? title : `[${title}](${docs})`} | ${summary} |\n`
  })
  return `| command | does |\n|---|---|\n${rows.join('')}`
}

/** Returns the commands. A command with verbs is replaced by its verbs. */
export function leavesOf(specs: readonly CommandTexts[]): readonly CommandTexts[] {
  return specs.flatMap((spec) => spec.verbs ?? [spec])
}

function rowsOf(specs: readonly CommandTexts[]): string {
  const width = Math.max(...specs.map(({ name }) => name.length))
  return specs.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}\n`).join('')
}

/** Returns the shared options of a command, which its synopsis leaves out. */
function sharedOptions({ options: { output, config, socket } }: CommandTexts): string {
  const json = output === undefined ? '' : ` [-o ${output.value ?? 'json'}]`
  if (socket !== undefined) return `${json} [--config FILE | --socket PATH]`
  return config === undefined || config.about === UNUSED ? json : `${json} [--config FILE]`
}

/** The help for `--config` of commands that accept the option but do not use it. */
export const UNUSED = 'accepted, not used'

/** Returns each option as it is written, and what it does. */
export function optionRows({
  options,
}: CommandTexts): readonly (readonly [option: string, about: string])[] {
  const rows = Object.entries(options).map(
    ([name, option]) => [label(name, option), option.about] as const,
  )
  return [...rows, ['-h, --help', 'this text']]
}

function optionsText(spec: CommandTexts): string {
  const rows = optionRows(spec)
  const width = Math.max(OPTION_WIDTH, ...rows.map(([text]) => text.length))
  return rows
    .map(([text, about]) => {
      return `  ${text.padEnd(width)}  ${about.replaceAll('\n', `\n${' '.repeat(width + 4)}`)}\n`
    })
    .join('')
}

function label(name: string, { short, value }: CommandOption): string {
  if (name === 'output') return `-o ${value ?? 'json'}`
  const long = `${short === undefined ? '' : `-${short}, `}--${name}`
  return value === undefined ? long : `${long} ${value}`
}
