// The program again, for `namegate exec` alone: scripts/bundle.mjs makes one file of it, which starts much sooner
// (docs/decisions/0016-…). No `await` here: such a file can't have one.

import { runCommand } from '../cli/main.ts'
import { execCommand } from '../cli/exec.ts'

const [, , , ...args] = process.argv
void runCommand(async () => ({ command: execCommand, args })).then((code) => process.exit(code))
