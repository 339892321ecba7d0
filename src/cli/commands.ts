// From a command's name to the command. Its file is loaded when it is called, so that one that needs little is
// there at once.

import { UsageError } from '../core/errors.ts'
import { nearest } from '../core/did-you-mean.ts'
import { COMMANDS, type CommandName } from './command-list.ts'
import type { Command } from './command.ts'

const LOADERS: Readonly<Record<CommandName, () => Promise<Command>>> = {
  run: async () => (await import('./commands/run.ts')).runCommand,
  exec: async () => (await import('./commands/exec.ts')).execCommand,
  status: async () => (await import('./commands/status.ts')).statusCommand,
  get: async () => (await import('./commands/get.ts')).getCommand,
  flows: async () => (await import('./commands/flows.ts')).flowsCommand,
  ask: async () => (await import('./commands/ask.ts')).askCommand,
  audit: async () => (await import('./commands/audit.ts')).auditCommand,
  resource: async () => (await import('./commands/resource.ts')).resourceCommand,
  datapath: async () => (await import('./commands/datapath.ts')).datapathCommand,
  intercept: async () => (await import('./commands/intercept.ts')).interceptCommand,
  match: async () => (await import('./commands/match.ts')).matchCommand,
  policy: async () => (await import('./commands/policy.ts')).policyCommand,
  state: async () => (await import('./commands/state.ts')).stateCommand,
  config: async () => (await import('./commands/config.ts')).configCommand,
  version: async () => (await import('./commands/version.ts')).versionCommand,
  completion: async () => (await import('./commands/completion.ts')).completionCommand,
  help: async () => (await import('./commands/help.ts')).helpCommand,
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
