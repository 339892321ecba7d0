// A command run as a function, with what it wrote.

import type { Command, CommandOutput } from '../../../src/cli/command.ts'
import { findCommand } from '../../../src/cli/commands.ts'

export interface Ran {
  readonly code: number
  readonly out: string
  readonly err: string
}

/** The command of that name: `status`, `policy check`. */
export function namegate(name: string): Command {
  return findCommand(name.split(' ')).command
}

export async function runCommand(command: Command, ...args: readonly string[]): Promise<Ran> {
  let [out, err] = ['', '']
  const output: CommandOutput = {
    stdout: (text) => void (out += text),
    stderr: (text) => void (err += text),
  }
  return { code: await command(args, output), out, err }
}

/** JSON that must be one object. */
export function objectIn(text: string): Readonly<Record<string, unknown>> {
  const parsed: unknown = JSON.parse(text)
  if (typeof parsed !== 'object' || parsed === null) throw new Error(`no object: ${text}`)
  return { ...parsed }
}
