// `namegate version`.

import { VERSION } from '../../version.ts'
import { EXIT_OK, readArguments, toJson, usageError, type CommandOutput } from '../command.ts'

const HELP = `Usage: namegate version [-o json]

Prints the version of this program.

Options:
  -o json           {"version", "node"} on stdout
  --config FILE     accepted, not used
  -h, --help        this text

Examples:
  namegate version
`

export function versionCommand(args: readonly string[], output: CommandOutput): number {
  const read = readArguments(args, HELP, output)
  if (typeof read === 'number') return read
  if (read.positionals.length > 0) return usageError('version takes no argument', HELP, output)
  const json = read.texts.has('output')
  output.stdout(
    json ? toJson({ version: VERSION, node: process.version }) : `namegate ${VERSION}\n`,
  )
  return EXIT_OK
}
