// A command run as a function, with what it wrote.

import type { Command, CommandOutput } from '../../../src/cli/command.ts'

export interface Ran {
  readonly code: number
  readonly out: string
  readonly err: string
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
