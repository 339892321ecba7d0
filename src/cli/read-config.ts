// Reads the configuration that a command uses: the file that is found (config-file.ts), else the built-in defaults. Apart from the
// commands, because reading YAML takes longer than the rest of them.

import type { Config } from '../config/config.ts'
import { defaultConfig, loadConfig } from '../config/load.ts'
import { DEFAULT_SOCKET, findConfigFile } from './config-file.ts'

/** Throws InvalidInputError with the faults of the file. */
export function readConfig(given: string | undefined): Config {
  const file = findConfigFile(given)
  if (file !== undefined) return loadConfig(file)
  return { ...defaultConfig(), admin: { socket: DEFAULT_SOCKET } }
}
