// `runConfig` runs `namegate config check FILE` and `namegate config schema`.

import { CREDENTIALS_VARIABLE } from '../../config/credentials.ts'
import { configJsonSchema, loadConfig } from '../../config/load.ts'
import { formatFault, InvalidInputError, type Fault } from '../../core/errors.ts'
import {
  EXIT_OK,
  EXIT_USAGE,
  faultsJson,
  toJson,
  type CommandOutput,
  type ParsedArguments,
} from '../command.ts'
import { CONFIG_FILES, findConfigFile } from '../config-file.ts'
import { checkSources } from '../config-sources.ts'

export function runConfig(read: ParsedArguments, output: CommandOutput): number {
  const [verb, file, ...rest] = read.positionals
  if (verb === 'schema' && file === undefined) {
    output.stdout(toJson(configJsonSchema()))
    return EXIT_OK
  }
  if (verb !== 'check' || rest.length > 0) {
    return read.wrong('config needs check [FILE] or schema')
  }
  const found = file ?? findConfigFile(read.texts.get('config'))
  if (found !== undefined) return check(found, read.texts.has('output'), output)
  return read.wrong(`found none of ${CONFIG_FILES.join(' and ')}: give FILE`)
}

function check(file: string, json: boolean, output: CommandOutput): number {
  const faults = checked(file)
  if (json) {
    output.stdout(faultsJson(faults))
  } else if (faults.length === 0) {
    output.stdout(`${file}: no faults\n`)
  } else {
    for (const fault of faults) output.stdout(`${formatFault(fault)}\n`)
  }
  return faults.length === 0 ? EXIT_OK : EXIT_USAGE
}

function checked(file: string): readonly Fault[] {
  try {
    // Outside the unit there is no folder, and the names of credentials are not looked up.
    return checkSources(loadConfig(file, process.env[CREDENTIALS_VARIABLE]))
  } catch (error) {
    if (error instanceof InvalidInputError) return error.faults
    throw error
  }
}
