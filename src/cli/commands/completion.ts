// `runCompletion` runs `namegate completion`. It prints the script for a shell, or, for these scripts, the words that can follow a command
// line. Names of endpoints and resources come from the running daemon. Without a daemon there are none, and no message.

import { DEFAULT_SOCKET } from '../../client/default-socket.ts'
import { clientOf } from '../client.ts'
import { EXIT_OK, type CommandOutput, type ParsedArguments } from '../command.ts'
import { findConfigFile, givenSocket } from '../config-file.ts'
import { complete, type Wanted } from '../completion/complete.ts'
import { FILES_LINE, SCRIPTS, SHELLS } from '../completion/scripts.ts'
import { fieldsOf, listOf, textOf } from '../fields.ts'
import type { CommandTexts } from '../reference.ts'
import { cleanCell } from '../table.ts'

/** How long the daemon can take to answer, in milliseconds. A person waits for it. */
const ANSWER_MS = 1000
/** Most names of the daemon that are offered. */
const NAMES_MAX = 1000

export async function runCompletion(
  { positionals: [word = 'bash', ...rest], wrong }: ParsedArguments,
  output: CommandOutput,
  specs: readonly CommandTexts[],
): Promise<number> {
  if (word === 'words') {
    for (const line of await linesFor(rest, specs)) output.stdout(`${line}\n`)
    return EXIT_OK
  }
  const shell = SHELLS.find((each) => each === word)
  if (shell === undefined || rest.length > 0) {
    return wrong(`completion: found ${[word, ...rest].join(' ')}, expected bash, zsh or fish`)
  }
  output.stdout(SCRIPTS[shell])
  return EXIT_OK
}

/** `words` are the words after `namegate`, the last of which is to be completed. */
async function linesFor(
  words: readonly string[],
  specs: readonly CommandTexts[],
): Promise<readonly string[]> {
  const wanted = complete(words, specs)
  if (wanted.kind === 'files') return [FILES_LINE]
  if (wanted.kind === 'words') {
    return wanted.words.map(({ word, about }) => (about === '' ? word : `${word}\t${about}`))
  }
  const current = words.at(-1) ?? ''
  // A person who completes a word wants no message about the daemon.
  const names = await namesOf(wanted, words).catch(() => [])
  return names
    .map((name) => `${wanted.prefix}${name}`)
    .filter((name) => name.startsWith(current))
    .slice(0, NAMES_MAX)
}

/** Asks the daemon of the --socket or --config on the command line, else of the usual places. */
async function namesOf(
  { kind }: Exclude<Wanted, { kind: 'words' | 'files' }>,
  words: readonly string[],
): Promise<readonly string[]> {
  const path = await socketFor(words)
  const client = clientOf({ path, named: 'of the command line' })
  const reply = await client.request(`GET /v1/${kind}`, { timeoutMs: ANSWER_MS })
  const rows = listOf(reply.value)
  return rows.map((row) => cleanCell(textOf(fieldsOf(row)['name'])))
}

async function socketFor(words: readonly string[]): Promise<string> {
  const given = givenSocket(optionIn(words, 'socket'))
  if (given !== undefined) return given.path
  const file = findConfigFile(optionIn(words, 'config'))
  if (file === undefined) return DEFAULT_SOCKET
  const { loadConfig } = await import('../../config/load.ts')
  return loadConfig(file).admin.socket
}

/** Returns the value of an option on an unfinished command line. */
function optionIn(words: readonly string[], name: string): string | undefined {
  const at = words.indexOf(`--${name}`)
  if (at >= 0 && at + 1 < words.length - 1) return words[at + 1]
  const start = `--${name}=`
  return words
    .slice(0, -1)
    .find((word) => word.startsWith(start))
    ?.slice(start.length)
}
