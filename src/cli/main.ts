// Runs a command and returns its exit code. Errors get their exit code here, in one place.

import { InvalidInputError, UnavailableError, UsageError } from '../core/errors.ts'
import { EXIT_UNAVAILABLE, EXIT_USAGE, type Command } from './command.ts'
import { processOutput } from './process-output.ts'

/** Runs the command that is found; `find` may throw UsageError. */
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
