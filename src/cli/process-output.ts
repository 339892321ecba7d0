// The process's stdout and stderr. A reader that has gone (`namegate get names | head`) is no error: the command ends well. A write
// that fails for another reason, as on a full disk, ends the process with exit code 3. The daemon writes nothing here.

import { messageOf, systemCodeOf } from '../core/errors.ts'
import { EXIT_OK, EXIT_UNAVAILABLE, type CommandOutput } from './command.ts'

export const processOutput: CommandOutput = {
  stdout: (text) => void process.stdout.write(text, failed),
  stderr: (text) => void process.stderr.write(text),
}

/** When all that was written to stdout is with the kernel; the process has ended where it was refused. */
export async function written(): Promise<void> {
  await new Promise<void>((done) => process.stdout.write('', () => done()))
}

function failed(error: unknown): void {
  if (error === undefined || error === null) return
  if (systemCodeOf(error) === 'EPIPE') process.exit(EXIT_OK)
  process.stderr.write(`namegate: Cannot write to standard output: ${messageOf(error)}\n`)
  process.exit(EXIT_UNAVAILABLE)
}

// A failed write is told to who wrote.
process.stdout.on('error', () => undefined)
process.stderr.on('error', () => undefined)
