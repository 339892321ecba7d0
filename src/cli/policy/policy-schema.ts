// `runPolicySchema` runs `namegate policy schema`. The command prints the JSON Schema of policy files, for editors.

import { policyJsonSchema } from '../../policy/schema/policy-schema.ts'
import { EXIT_OK, toJson, type CommandOutput, type ParsedArguments } from '../command.ts'

export function runPolicySchema(read: ParsedArguments, output: CommandOutput): number {
  if (read.positionals.length > 0) return read.wrong('policy schema takes no argument')
  output.stdout(toJson(policyJsonSchema()))
  return EXIT_OK
}
