// The program: every command, loaded when it is called.

import { findCommand } from './cli/commands.ts'
import { runCommand } from './cli/main.ts'

const args = process.argv.slice(2)
process.exit(await runCommand(async () => await findCommand(args)))
