// The program: every command, loaded when it is called.

import { keepYoungSmall } from './native/young-generation.ts'

keepYoungSmall()
const [{ findCommand }, { runCommand }] = await Promise.all([
  import('./cli/commands.ts'),
  import('./cli/main.ts'),
])
const args = process.argv.slice(2)
process.exit(await runCommand(async () => await findCommand(args)))
