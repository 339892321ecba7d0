// COMMANDS lists all commands, in the order of help. `findCommand` finds the command for the words of a command line. The code of a command
// is loaded only when the command is called, so that a small command starts at once.

import { UsageError } from '../core/errors.ts'
import { nearest } from '../core/did-you-mean.ts'
import { VERSION } from '../version.ts'
import {
  commandOf,
  EXIT_OK,
  toJson,
  type Command,
  type CommandSpec,
  type ParsedCommand,
} from './command.ts'
import { ASK, AUDIT, FLOWS, GET, KUBERNETES, RESOURCE, RUN, STATUS } from './definitions/daemon.ts'
import { CNI } from './definitions/cni.ts'
import { EXEC } from './definitions/exec.ts'
import { CONFIG, DATAPATH, DOCTOR, INTERCEPT, MATCH, STATE } from './definitions/kernel.ts'
import { EXPLAIN, PAGE, TOP } from './definitions/observe.ts'
import { flag, json, UNUSED_CONFIG } from './definitions/options.ts'
import { POLICY } from './definitions/policy.ts'
import { INIT, UP } from './definitions/up.ts'
import { listText, type CommandTexts } from './reference.ts'

const VERSION_COMMAND: ParsedCommand = {
  name: 'version',
  summary: 'print the version of this program',
  synopsis: ['version'],
  about: 'Prints the version of this program.',
  options: { output: json('{"version", "node"} on stdout'), config: UNUSED_CONFIG },
  exitCodes: '',
  examples: ['namegate version'],
  run: ({ positionals, texts, wrong }, output) => {
    if (positionals.length > 0) return wrong('version takes no argument')
    const found = { version: VERSION, node: process.version }
    output.stdout(texts.has('output') ? toJson(found) : `namegate ${VERSION}\n`)
    return EXIT_OK
  },
}

const COMPLETION: ParsedCommand = {
  name: 'completion',
  summary: 'print the completion script for bash, zsh or fish',
  synopsis: ['completion bash|zsh|fish', 'completion words -- WORD...'],
  words: ['bash', 'zsh', 'fish'],
  about: `Prints the script with which a shell completes commands, options, values, files, and names of the running daemon. The script
calls 'completion words', which prints the words that can follow these words.`,
  options: { config: UNUSED_CONFIG },
  exitCodes: '',
  examples: [
    'source <(namegate completion bash)',
    'namegate completion bash > /etc/bash_completion.d/namegate',
    'namegate completion zsh > /usr/local/share/zsh/site-functions/_namegate',
    'namegate completion fish > /etc/fish/completions/namegate.fish',
  ],
  run: async (read, output) =>
    await (await import('./commands/completion.ts')).runCompletion(read, output, COMMANDS),
}

const HELP: ParsedCommand = {
  name: 'help',
  summary: 'print this list, the help of a command, or a man page',
  synopsis: ['help [COMMAND]', 'help --man [namegate|namegate.yaml]'],
  about: `Lists all commands. With --man it prints the man page namegate(1) of all commands, or namegate.yaml(5) of the configuration.`,
  options: { man: flag('print a man page'), config: UNUSED_CONFIG },
  exitCodes: '',
  examples: [
    'namegate help status',
    'namegate help --man > /usr/local/share/man/man1/namegate.1',
    'namegate help --man namegate.yaml > /usr/local/share/man/man5/namegate.yaml.5',
  ],
  run: async ({ flags, positionals: [page = 'namegate', ...rest], wrong }, output) => {
    if (!flags.has('man')) {
      output.stdout(listText(COMMANDS))
      return EXIT_OK
    }
    if (!MAN_PAGES.includes(page) || rest.length > 0) {
      return wrong(`--man: found ${[page, ...rest].join(' ')}, expected ${MAN_PAGES.join(' or ')}`)
    }
    const { commandPage, configPage } = await import('./man.ts')
    if (page === 'namegate') {
      output.stdout(commandPage(COMMANDS, VERSION))
      return EXIT_OK
    }
    const { configJsonSchema } = await import('../config/load.ts')
    output.stdout(configPage(configJsonSchema(), VERSION))
    return EXIT_OK
  },
}

const MAN_PAGES: readonly string[] = ['namegate', 'namegate.yaml']

/** All commands, in the order of help. */
export const COMMANDS: readonly CommandSpec[] = [
  UP,
  RUN,
  EXEC,
  ASK,
  EXPLAIN,
  MATCH,
  POLICY,
  GET,
  RESOURCE,
  STATUS,
  FLOWS,
  TOP,
  PAGE,
  INTERCEPT,
  AUDIT,
  DATAPATH,
  KUBERNETES,
  STATE,
  CONFIG,
  DOCTOR,
  CNI,
  INIT,
  VERSION_COMMAND,
  COMPLETION,
  HELP,
]

/** Options that mean a command. */
const ALIASES: ReadonlyMap<string, string> = new Map([
  ['--help', 'help'],
  ['-h', 'help'],
  ['--version', 'version'],
])

/** Returns the command that the program's arguments name, and its own arguments. Throws UsageError for an unknown command. */
export function findCommand(args: readonly string[]): {
  readonly command: Command
  readonly args: readonly string[]
} {
  const [first, ...rest] = args
  if (first === undefined) throw new UsageError("no command ('namegate help' lists all)")
  const name = ALIASES.get(first) ?? first
  const [topic] = rest
  if (name === 'help' && topic !== undefined) {
    if (!topic.startsWith('-')) return findCommand(isVerbUnknown(rest) ? rest : [...rest, '--help'])
    // The help of `help` is the list of commands.
    if (ALIASES.get(topic) === 'help') return findCommand(['help'])
  }
  const known = COMMANDS.find((each) => each.name === name)
  if (known !== undefined) return findVerb(known, rest)
  const meant = nearest(
    name,
    COMMANDS.map((each) => each.name),
  )
  const hint = meant === undefined ? '' : `; did you mean ${meant}?`
  throw new UsageError(`unknown command ${JSON.stringify(name)}${hint} ('namegate help' lists all)`)
}

/** True for a command that has verbs, with a word that is none of them. The command then names the verb that was probably meant. */
function isVerbUnknown([name, verb]: readonly string[]): boolean {
  const { verbs = [] }: CommandTexts = COMMANDS.find((each) => each.name === name) ?? HELP
  return (
    verb !== undefined && verbs.length > 0 && verbs.every((each) => each.name !== `${name} ${verb}`)
  )
}

function findVerb(
  spec: CommandSpec,
  args: readonly string[],
): { readonly command: Command; readonly args: readonly string[] } {
  const [verb, ...rest] = args
  const verbs = 'runRaw' in spec ? [] : (spec.verbs ?? [])
  const found = verbs.find(({ name }) => name === `${spec.name} ${verb}`)
  return found === undefined
    ? { command: commandOf(spec), args }
    : { command: commandOf(found), args: rest }
}
