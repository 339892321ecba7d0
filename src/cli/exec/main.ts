// The program again, for `namegate exec` alone: a file of its own is half as long as that of all commands, and there sooner
// (docs/decisions/0016-…). No `await` here: such a file can't have one.

import { runCommand } from '../main.ts'
import { commandOf } from '../command.ts'
import { EXEC } from '../definitions/exec.ts'

const [, , , ...args] = process.argv
void runCommand(() => ({ command: commandOf(EXEC), args })).then((code) => process.exit(code))
