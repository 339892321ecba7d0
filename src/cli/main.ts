// `runCommand` runs a command with the process's stdout and stderr, and returns its exit code. Only this file translates errors into exit
// codes. If the reader of stdout has ended (`namegate get names | head`), the process ends with exit code 0. If a write fails for another
// reason, such as a full disk, the process ends with exit code 3. No failed write ends a command that calls `onNoReader`. The
// daemon does not use this code for its log.

import {
  InvalidInputError,
  messageOf,
  systemCodeOf,
  UnavailableError,
  UsageError,
} from '../core/errors.ts'
import {
  EXIT_OK,
  EXIT_UNAVAILABLE,
  EXIT_USAGE,
  type Command,
  type CommandOutput,
  type Terminal,
} from './command.ts'

/** Runs the command that `find` returns, and returns the exit code. Writes errors of `find` and of the command to stderr. */
export async function runCommand(
  find: () => { readonly command: Command; readonly args: readonly string[] },
): Promise<number> {
  try {
    const { command, args } = find()
    return await command(args, processOutput)
  } catch (error) {
    const known = error instanceof InvalidInputError || error instanceof UsageError
    const expected = known || error instanceof UnavailableError
    const text = error instanceof Error ? (expected ? error.message : error.stack) : String(error)
    processOutput.stderr(error instanceof InvalidInputError ? `${text}\n` : `namegate: ${text}\n`)
    return known ? EXIT_USAGE : EXIT_UNAVAILABLE
  }
}

const processOutput: CommandOutput = {
  stdout: (text) => void process.stdout.write(text, failed),
  stderr: (text) => void process.stderr.write(text, stderrFailed),
  get terminal() {
    return process.stdout.isTTY ? processTerminal : undefined
  },
  onNoReader: (run) => (noReader = run),
}

/** Set by a command that ends itself. Undefined: a failed write to stdout ends the process. */
let noReader: (() => void) | undefined

/** The size that a terminal without a known size is taken for. */
const [COLUMNS, ROWS] = [80, 24]

const processTerminal: Terminal = {
  get columns() {
    return process.stdout.columns || COLUMNS
  },
  get rows() {
    return process.stdout.rows || ROWS
  },
  onInterrupt: (run) => void process.once('SIGINT', run).once('SIGTERM', run),
}

/** Resolves when the kernel has everything that was written to stdout. If the kernel refuses a write, the process ends instead. */
export async function written(): Promise<void> {
  await new Promise<void>((done) => process.stdout.write('', () => done()))
}

function failed(error: unknown): void {
  if (error === undefined || error === null) return
  if (systemCodeOf(error) === 'EPIPE')
    return noReader === undefined ? process.exit(EXIT_OK) : noReader()
  process.stderr.write(`namegate: Cannot write to standard output: ${messageOf(error)}\n`)
  if (noReader === undefined) process.exit(EXIT_UNAVAILABLE)
}

function stderrFailed(error: unknown): void {
  if (systemCodeOf(error) === 'EPIPE') noReader?.()
}

// The callback of a write reports its failure, so the event of the stream is ignored.
process.stdout.on('error', () => undefined)
process.stderr.on('error', () => undefined)
