// From a command's name to the command. Its file is loaded when it is called, so that one that needs little is
// there at once.

import { UsageError } from '../core/errors.ts'
import { nearest } from '../core/nearest.ts'
import { COMMANDS, type CommandName } from './command-list.ts'
import type { Command } from './command.ts'

const LOADERS: Readonly<Record<CommandName, () => Promise<Command>>> = {
  run: async () => (await import('./run.ts')).runCommand,
  exec: async () => (await import('./exec.ts')).execCommand,
  status: async () => (await import('./status.ts')).statusCommand,
  get: async () => (await import('./get.ts')).getCommand,
  flows: async () => (await import('./flows.ts')).flowsCommand,
  ask: async () => (await import('./ask.ts')).askCommand,
  audit: async () => (await import('./audit.ts')).auditCommand,
  resource: async () => (await import('./resource.ts')).resourceCommand,
  datapath: async () => (await import('./datapath.ts')).datapathCommand,
  intercept: async () => (await import('./intercept.ts')).interceptCommand,
  match: async () => (await import('./match.ts')).matchCommand,
  policy: async () => (await import('./policy.ts')).policyCommand,
  state: async () => (await import('./state.ts')).stateCommand,
  config: async () => (await import('./config.ts')).configCommand,
  version: async () => (await import('./version.ts')).versionCommand,
  completion: async () => (await import('./completion.ts')).completionCommand,
  help: async () => (await import('./help.ts')).helpCommand,
}

/** What the arguments of the program ask for; throws UsageError when it is no command. */
export async function findCommand(
  args: readonly string[],
): Promise<{ readonly command: Command; readonly args: readonly string[] }> {
  const [first, ...rest] = args
  if (first === undefined) throw new UsageError("no command ('namegate help' lists all)")
  const [topic] = rest
  const isAboutTopic = first === 'help' && topic !== undefined && !topic.startsWith('-')
  const name = isAboutTopic ? topic : (ALIASES.get(first) ?? first)
  const known = COMMANDS.find((each) => each.name === name)
  if (known !== undefined) {
    return { command: await LOADERS[known.name](), args: isAboutTopic ? ['--help'] : rest }
  }
  const meant = nearest(
    name,
    COMMANDS.map((each) => each.name),
  )
  const hint = meant === undefined ? '' : `; did you mean ${meant}?`
  throw new UsageError(`unknown command ${JSON.stringify(name)}${hint} ('namegate help' lists all)`)
}

const ALIASES: ReadonlyMap<string, string> = new Map([
  ['--help', 'help'],
  ['-h', 'help'],
  ['--version', 'version'],
])
