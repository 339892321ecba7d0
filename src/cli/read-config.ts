// The config that a command goes by: the file named, else the default file, else, when that is not there, the
// built-in defaults. Apart from the commands because reading YAML costs more time than all the rest of them.

import { existsSync } from 'node:fs'
import type { Config } from '../config/config.ts'
import { DEFAULT_CONFIG_FILE, defaultConfig, loadConfig } from '../config/load.ts'

/** Throws InvalidInputError with the faults of the file. */
export function readConfig(file: string | undefined): Config {
  if (file !== undefined) return loadConfig(file)
  return existsSync(DEFAULT_CONFIG_FILE) ? loadConfig(DEFAULT_CONFIG_FILE) : defaultConfig()
}
