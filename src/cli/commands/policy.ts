// `namegate policy VERB`: finds the verb's command.

import { nearest } from '../../core/did-you-mean.ts'
import { EXIT_OK, readArguments, usageError, type Command, type CommandOutput } from '../command.ts'

const HELP = `Usage: namegate policy check|explain|lint|suggest|test|wait ...

check     validates policy files
explain   may an endpoint ask a name or connect, and why
lint      what is valid but hardly meant
suggest   a policy from recorded flows
test      do policies do what a file expects of them
wait      until a revision of policies is enforced
'namegate policy VERB --help' tells more.

Options:
  --config FILE     config file
  -h, --help        this text

Examples:
  namegate policy check config/policies
  namegate policy explain --policies config/policies --labels app=shop --ask www.example.com
`

/** Each is loaded when it is called: checking needs no core. */
const VERBS: ReadonlyMap<string, () => Promise<Command>> = new Map<string, () => Promise<Command>>([
  ['check', async () => (await import('../policy/policy-check.ts')).policyCheckCommand],
  ['explain', async () => (await import('../policy/policy-explain.ts')).policyExplainCommand],
  ['suggest', async () => (await import('../policy/policy-suggest.ts')).policySuggestCommand],
  ['wait', async () => (await import('../policy/policy-wait.ts')).policyWaitCommand],
  ['lint', async () => (await import('../policy/policy-lint.ts')).policyLintCommand],
  ['test', async () => (await import('../policy/policy-test.ts')).policyTestCommand],
])

export async function policyCommand(
  args: readonly string[],
  output: CommandOutput,
): Promise<number> {
  const [verb = '', ...rest] = args
  const load = VERBS.get(verb)
  if (load !== undefined) return await (await load())(rest, output)
  if (verb.startsWith('-')) {
    const read = readArguments(args, HELP, output)
    return read === EXIT_OK ? EXIT_OK : usageError('policy needs a verb', HELP, output)
  }
  const meant = nearest(verb, [...VERBS.keys()])
  const hint = meant === undefined ? '' : `; did you mean ${meant}?`
  return usageError(
    verb === '' ? 'policy needs a verb' : `policy: unknown verb ${JSON.stringify(verb)}${hint}`,
    HELP,
    output,
  )
}
