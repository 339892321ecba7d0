// This program runs `namegate exec`, without the other commands. Its bundle is half as long as the bundle of all commands, and loads in
// less time (docs/decisions/0016-one-file-and-the-code-of-it.md). The file has no top-level `await`, because such a bundle cannot have one.

import { runCommand } from '../main.ts'
import { commandOf } from '../command.ts'
import { EXEC } from '../definitions/exec.ts'

const [, , , ...args] = process.argv
void runCommand(() => ({ command: commandOf(EXEC), args })).then((code) => process.exit(code))
