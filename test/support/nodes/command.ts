// Runs a command as a function, and returns its output.

import type { Command, CommandOutput, Terminal } from '../../../src/cli/command.ts'
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
  return await runCommandOn(undefined, command, ...args)
}

/** Runs the command with stdout on a terminal. */
export async function runCommandOn(
  terminal: Terminal | undefined,
  command: Command,
  ...args: readonly string[]
): Promise<Ran> {
  let [out, err] = ['', '']
  const output: CommandOutput = {
    stdout: (text) => void (out += text),
    stderr: (text) => void (err += text),
    terminal,
  }
  return { code: await command(args, output), out, err }
}

/** A terminal of that width, without interrupts. */
export function mkTerminal(columns: number): Terminal {
  return { columns, rows: 24, onInterrupt: () => undefined }
}

/** JSON that must be one object. */
export function objectIn(text: string): Readonly<Record<string, unknown>> {
  const parsed: unknown = JSON.parse(text)
  if (typeof parsed !== 'object' || parsed === null) throw new Error(`no object: ${text}`)
  return { ...parsed }
}
