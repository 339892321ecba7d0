// The process's own stdout and stderr. A reader that went away (`namegate get names | head`) is no error: the
// command has nothing more to do and ends well.

import { EXIT_OK, type CommandOutput } from './command.ts'

export const processOutput: CommandOutput = {
  stdout: (text) => void process.stdout.write(text),
  stderr: (text) => void process.stderr.write(text),
}

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(EXIT_OK)
  throw error
})
process.stderr.on('error', () => undefined)
