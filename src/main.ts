// The program: every command, loaded when it is called. scripts/bundle.mjs makes one file of it, which starts much sooner
// (docs/decisions/0016-…). No `await` here: such a file can't have one.

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
