// `namegate config check FILE` and `namegate config schema`.

import { configJsonSchema, loadConfig } from '../../config/load.ts'
import { formatFault, InvalidInputError, type Fault } from '../../core/errors.ts'
import {
  EXIT_OK,
  EXIT_USAGE,
  readArguments,
  toJson,
  usageError,
  type CommandOutput,
} from '../command.ts'
import { CONFIG_FILES, findConfigFile } from '../config-file.ts'

const HELP = `Usage: namegate config check [FILE] | namegate config schema

check     validates a config file (default: the one that other commands go by); every fault is one line on
          stdout: file:line:column: message
schema    prints the JSON Schema of the file: every key with its default, unit and meaning

Options:
  -o json           check: one JSON array of {file, line, column, message} on stdout
  --config FILE     the file to check
  -h, --help        this text

Exit codes: 0 ok, 2 faults found or wrong use.

Examples:
  namegate config check config/namegate.yaml
  namegate config schema > namegate.schema.json
`

export function configCommand(args: readonly string[], output: CommandOutput): number {
  const read = readArguments(args, HELP, output)
  if (typeof read === 'number') return read
  const [verb, file, ...rest] = read.positionals
  if (verb === 'schema' && file === undefined) {
    output.stdout(toJson(configJsonSchema()))
    return EXIT_OK
  }
  if (verb !== 'check' || rest.length > 0) {
    return usageError('config needs check [FILE] or schema', HELP, output)
  }
  const found = file ?? findConfigFile(read.texts.get('config'))
  if (found !== undefined) return check(found, read.texts.has('output'), output)
  return usageError(`found none of ${CONFIG_FILES.join(' and ')}: give FILE`, HELP, output)
}

function check(file: string, json: boolean, output: CommandOutput): number {
  const faults = faultsOf(file)
  if (json) {
    output.stdout(toJson(faults.map(({ position, message }) => ({ ...position, message }))))
  } else if (faults.length === 0) {
    output.stdout(`${file}: no faults\n`)
  } else {
    for (const fault of faults) output.stdout(`${formatFault(fault)}\n`)
  }
  return faults.length === 0 ? EXIT_OK : EXIT_USAGE
}

function faultsOf(file: string): readonly Fault[] {
  try {
    loadConfig(file)
    return []
  } catch (error) {
    if (error instanceof InvalidInputError) return error.faults
    throw error
  }
}
