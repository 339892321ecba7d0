// All commands by name. A command's file is loaded when it is called, so that one that needs little is there at once.

import { UsageError } from '../core/errors.ts'
import { nearest } from '../core/nearest.ts'
import type { Command } from './command.ts'

export interface CommandEntry {
  readonly name: string
  readonly summary: string
  /** Words that may follow, for completion. */
  readonly words: readonly string[]
  readonly load: () => Promise<Command>
}

const RESOURCES = [
  'endpoints',
  'policies',
  'selectors',
  'names',
  'ipcache',
  'identities',
  'resources',
  'datapath',
] as const

export const COMMANDS: readonly CommandEntry[] = [
  entry('run', 'run the daemon', [], async () => (await import('./run.ts')).runCommand),
  entry(
    'status',
    'state of the daemon',
    ['--ready'],
    async () => (await import('./status.ts')).statusCommand,
  ),
  entry(
    'get',
    'what the daemon knows, as tables',
    RESOURCES,
    async () => (await import('./get.ts')).getCommand,
  ),
  entry(
    'flows',
    'DNS decisions and drops as they happen',
    ['--follow', '--verdict'],
    async () => (await import('./flows.ts')).flowsCommand,
  ),
  entry(
    'ask',
    'ask a name through the proxy',
    ['--server', '--tcp'],
    async () => (await import('./ask.ts')).askCommand,
  ),
  entry(
    'audit',
    'let denied traffic pass, and report it',
    ['on', 'off', '--node', '--endpoint', '--selector'],
    async () => (await import('./audit.ts')).auditCommand,
  ),
  entry(
    'datapath',
    'verify, detach or set the mode of enforcement',
    ['verify', 'detach', 'mode', 'enforce', 'audit', 'bypass'],
    async () => (await import('./datapath.ts')).datapathCommand,
  ),
  entry(
    'match',
    'does a pattern match names',
    [],
    async () => (await import('./match.ts')).matchCommand,
  ),
  entry(
    'policy',
    'check policy files',
    ['check'],
    async () => (await import('./policy.ts')).policyCommand,
  ),
  entry(
    'config',
    'check the config file, or print its schema',
    ['check', 'schema'],
    async () => (await import('./config.ts')).configCommand,
  ),
  entry(
    'version',
    'version of this program',
    [],
    async () => (await import('./version.ts')).versionCommand,
  ),
  entry(
    'completion',
    'completion for bash',
    [],
    async () => (await import('./completion.ts')).completionCommand,
  ),
  entry(
    'help',
    'this list, or the help of a command',
    [],
    async () => (await import('./help.ts')).helpCommand,
  ),
]

/** Commands of the contract whose time has not come. */
export const NOT_BUILT: readonly string[] = ['exec', 'intercept', 'state']

/** The command that the first argument names; throws UsageError. */
export async function findCommand(name: string): Promise<Command> {
  const known = COMMANDS.find((each) => each.name === name)
  if (known !== undefined) return await known.load()
  if (NOT_BUILT.includes(name)) throw new UsageError(`${name} is not built yet`)
  const meant = nearest(
    name,
    COMMANDS.map((each) => each.name),
  )
  const hint = meant === undefined ? '' : `; did you mean ${meant}?`
  throw new UsageError(`unknown command ${JSON.stringify(name)}${hint} ('namegate help' lists all)`)
}

function entry(
  name: string,
  summary: string,
  words: readonly string[],
  load: () => Promise<Command>,
): CommandEntry {
  return { name, summary, words, load }
}
