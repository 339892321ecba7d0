// Runs the command that the arguments name. Each command is loaded when it is called. scripts/bundle.mjs makes one file of this
// module and all that it imports, because one file starts much sooner (docs/decisions/0016-one-file-and-the-code-of-it.md). Such
// a file cannot have a top-level `await`.

import { findCommand } from './cli/commands.ts'
import { runCommand, written } from './cli/main.ts'
import { keepYoungSmall } from './native/young-generation.ts'

keepYoungSmall()
const args = process.argv.slice(2)
void runCommand(() => findCommand(args)).then(async (code) => {
  await written()
  process.exit(code)
})
