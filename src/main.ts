// argv -> command -> exit code. Errors that have an exit code get it here, in one place.

import { EXIT_UNAVAILABLE, EXIT_USAGE } from './cli/command.ts'
import { findCommand } from './cli/commands.ts'
import { processOutput } from './cli/process-output.ts'
import { InvalidInputError, UnavailableError, UsageError } from './core/errors.ts'

const ALIASES: Readonly<Record<string, string>> = {
  '--help': 'help',
  '-h': 'help',
  '--version': 'version',
}

const [first, ...rest] = process.argv.slice(2)
process.exit(await main(first, rest))

async function main(name: string | undefined, args: readonly string[]): Promise<number> {
  try {
    if (name === undefined) throw new UsageError("no command ('namegate help' lists all)")
    return await (
      await findCommand(ALIASES[name] ?? name)
    )(args, processOutput)
  } catch (error) {
    const known = error instanceof InvalidInputError || error instanceof UsageError
    const expected = known || error instanceof UnavailableError
    const text = error instanceof Error ? (expected ? error.message : error.stack) : String(error)
    processOutput.stderr(error instanceof InvalidInputError ? `${text}\n` : `namegate: ${text}\n`)
    return known ? EXIT_USAGE : EXIT_UNAVAILABLE
  }
}
