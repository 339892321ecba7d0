// The program: all commands, each loaded when it is called. scripts/bundle.mjs makes one file of it, which starts much sooner
// (docs/decisions/0016-…). No top-level `await`, because such a file cannot have one.

import { findCommand } from './cli/commands.ts'
import { runCommand } from './cli/main.ts'
import { written } from './cli/process-output.ts'
import { keepYoungSmall } from './native/young-generation.ts'

keepYoungSmall()
const args = process.argv.slice(2)
void runCommand(() => findCommand(args)).then(async (code) => {
  await written()
  process.exit(code)
})
