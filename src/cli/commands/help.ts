// `namegate help`: all commands. `namegate help COMMAND` is `namegate COMMAND --help` (commands.ts).

import { EXIT_OK, readArguments, type CommandOutput } from '../command.ts'
import { COMMANDS } from '../command-list.ts'

const HEAD = `namegate: DNS names in, kernel identities out, and no answer leaves before the kernel knows it.

Usage: namegate COMMAND [OPTIONS]

`

const TAIL = `
Every command takes --help, --config FILE and, where it reads, -o json; those that ask a daemon --socket PATH.

Exit codes: 0 ok; 1 negative result (denied, differs, not ready, faults); 2 wrong use or invalid input; 3 could
not be done (no daemon, no privilege, port taken, kernel refused).

Examples:
  namegate run --config config/namegate.yaml
  namegate ask www.example.com
  namegate get endpoints
`

export function helpCommand(args: readonly string[], output: CommandOutput): number {
  const read = readArguments(args, helpText(), output)
  if (typeof read === 'number') return read
  output.stdout(helpText())
  return EXIT_OK
}

function helpText(): string {
  const width = Math.max(...COMMANDS.map(({ name }) => name.length))
  const list = COMMANDS.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}\n`).join('')
  return `${HEAD}${list}${TAIL}`
}
