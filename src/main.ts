// argv -> command -> exit code. Errors that have an exit code get it here, in one place.

import { EXIT_UNAVAILABLE, EXIT_USAGE } from './cli/command.ts'
import { findCommand } from './cli/commands.ts'
import { processOutput } from './cli/process-output.ts'
import { InvalidInputError, UnavailableError, UsageError } from './core/errors.ts'

process.exit(await main(process.argv.slice(2)))

async function main(argv: readonly string[]): Promise<number> {
  try {
    const { command, args } = await findCommand(argv)
    return await command(args, processOutput)
  } catch (error) {
    const known = error instanceof InvalidInputError || error instanceof UsageError
    const expected = known || error instanceof UnavailableError
    const text = error instanceof Error ? (expected ? error.message : error.stack) : String(error)
    processOutput.stderr(error instanceof InvalidInputError ? `${text}\n` : `namegate: ${text}\n`)
    return known ? EXIT_USAGE : EXIT_UNAVAILABLE
  }
}
