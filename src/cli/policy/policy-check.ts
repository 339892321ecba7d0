// `runPolicyCheck` runs `namegate policy check`. The command validates policy files and folders without a daemon. It prints faults to
// stdout, one per line, in the form `file:line:column: message`, which editors and CI systems understand.

import { findPolicyFiles, readTextFile } from '../../config/files.ts'
import { formatFault, type Fault, type Position } from '../../core/errors.ts'
import { defaultConfig, loadConfig } from '../../config/load.ts'
import { loadPolicies, type LoadOptions } from '../../policy/load/load.ts'
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

export function runPolicyCheck(read: ParsedArguments, output: CommandOutput): number {
  const file = namedConfigFile(read.texts.get('config'))
  if (read.positionals.length === 0 && file === undefined) {
    return read.wrong('policy check needs at least one PATH, or --config')
  }
  const { policies: config } = file === undefined ? defaultConfig() : loadConfig(file)
  const named = read.positionals.length > 0
  const paths = named ? read.positionals : config.paths.map(({ path }) => path)
  const { faults, policies, files, isWhole } = checkPaths(paths, readingOf(config))
  if (read.texts.has('output')) {
    output.stdout(faultsJson(faults))
  } else {
    for (const fault of faults) output.stdout(`${formatFault(fault)}\n`)
    const what = `${counted(policies, 'policy', 'policies')} in ${counted(files, 'file', 'files')}`
    if (faults.length === 0) output.stdout(`${what}: no faults\n`)
    else output.stderr(`${counted(faults.length, 'fault', 'faults')}; good: ${what}\n`)
  }
  if (!isWhole) return EXIT_USAGE
  return faults.length === 0 ? EXIT_OK : EXIT_NEGATIVE
}

interface Checked {
  readonly faults: readonly Fault[]
  /** Number of policies in the files without faults. */
  readonly policies: number
  /** Number of files without faults. */
  readonly files: number
  /** True if every file and folder could be read. */
  readonly isWhole: boolean
}

function checkPaths(paths: readonly string[], reading: LoadOptions): Checked {
  const faults: Fault[] = []
  const files = new Set<string>()
  let isWhole = true
  for (const path of paths) {
    const found = findPolicyFiles(path)
    faults.push(...found.faults)
    if (found.unread.length > 0) isWhole = false
    for (const file of found.files) files.add(file)
  }
  let policies = 0
  let good = 0
  const seen = new Map<string, Position>()
  for (const file of files) {
    const read = readTextFile(file)
    if (read.kind === 'bad') {
      faults.push(read.fault)
      isWhole = false
      continue
    }
    const loaded = loadPolicies(read.text, file, { ...reading, seen })
    policies += loaded.policies.length
    if (loaded.faults.length === 0) good++
    faults.push(...loaded.faults)
  }
  return { faults, policies, files: good, isWhole }
}

function counted(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`
}
