// `runPolicyCheck` runs `namegate policy check`. The command validates policy files and folders without a daemon. It prints faults to
// stdout, one per line, in the form `file:line:column: message`, which editors and CI systems understand.

import { formatFault } from '../../core/errors.ts'
import { defaultConfig, loadConfig } from '../../config/load.ts'
import { readingOf } from '../../sources/files/policy-files.ts'
import {
  EXIT_NEGATIVE,
  EXIT_OK,
  EXIT_USAGE,
  faultsJson,
  type CommandOutput,
  type ParsedArguments,
} from '../command.ts'
import { namedConfigFile } from '../config-file.ts'
import { checkPaths } from './check-paths.ts'
import { hasFindings } from './policy-lint.ts'

/** `policy check` looks for doubtful rules only up to this number of policies, because lint compares policies with each other. */
const LINTED_MAX = 300
const DOUBTFUL = "'namegate policy lint' finds doubtful rules\n"

export function runPolicyCheck(read: ParsedArguments, output: CommandOutput): number {
  const file = namedConfigFile(read.texts.get('config'))
  if (read.positionals.length === 0 && file === undefined) {
    return read.wrong('policy check needs at least one PATH, or --config')
  }
  const whole = file === undefined ? defaultConfig() : loadConfig(file)
  const config = whole.policies
  const named = read.positionals.length > 0
  const paths = named ? read.positionals : config.paths.map(({ path }) => path)
  const { faults, policies, files, isWhole } = checkPaths(paths, readingOf(config))
  if (read.texts.has('output')) {
    output.stdout(faultsJson(faults))
  } else {
    for (const fault of faults) output.stdout(`${formatFault(fault)}\n`)
    const what = `${counted(policies, 'policy', 'policies')} in ${counted(files, 'file', 'files')}`
    if (faults.length === 0) {
      output.stdout(`${what}: no faults\n`)
      if (policies <= LINTED_MAX && hasFindings(paths, whole)) output.stderr(DOUBTFUL)
    } else output.stderr(`${counted(faults.length, 'fault', 'faults')}; good: ${what}\n`)
  }
  if (!isWhole) return EXIT_USAGE
  return faults.length === 0 ? EXIT_OK : EXIT_NEGATIVE
}

function counted(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`
}
