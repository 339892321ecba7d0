// `namegate policy VERB`: finds the verb's command.

import { nearest } from '../core/nearest.ts'
import { EXIT_OK, readArguments, usageError, type CommandOutput } from './command.ts'
import { policyCheckCommand } from './policy-check.ts'

const HELP = `Usage: namegate policy check PATH...

check     validates policy files ('namegate policy check --help')

Options:
  --config FILE     accepted, not used
  -h, --help        this text

Examples:
  namegate policy check config/policies
`

const NOT_BUILT: readonly string[] = ['explain', 'suggest', 'lint', 'test', 'wait']

export function policyCommand(args: readonly string[], output: CommandOutput): number {
  const [verb = '', ...rest] = args
  if (verb === 'check') return policyCheckCommand(rest, output)
  if (NOT_BUILT.includes(verb)) return usageError(`policy ${verb} is not built yet`, HELP, output)
  if (verb.startsWith('-')) {
    const read = readArguments(args, HELP, output)
    return read === EXIT_OK ? EXIT_OK : usageError('policy needs a verb', HELP, output)
  }
  const meant = nearest(verb, ['check', ...NOT_BUILT])
  const hint = meant === undefined ? '' : `; did you mean ${meant}?`
  return usageError(
    verb === '' ? 'policy needs a verb' : `policy: unknown verb ${JSON.stringify(verb)}${hint}`,
    HELP,
    output,
  )
}
