// This file finds and reads the configuration that a command uses, and finds the daemon's socket. The parser is loaded only when a file is
// read, because break-glass mode needs only the name of the file. The script bin/namegate searches for the file in the same order.

import { existsSync } from 'node:fs'
import { DEFAULT_SOCKET } from '../client/default-socket.ts'
import type { SocketPlace } from '../client/transport.ts'
import type { Config } from '../config/config.ts'
import type { CredentialFolder } from '../config/credentials.ts'

/** Where the configuration is searched: in the working directory, and where the systemd units expect it. */
export const CONFIG_FILES = ['config/namegate.yaml', '/etc/namegate/namegate.yaml'] as const

/** Returns the file of --config, else of $NAMEGATE_CONFIG, else the first of CONFIG_FILES that exists. Undefined if there is none. */
export function findConfigFile(option: string | undefined): string | undefined {
  return namedConfigFile(option) ?? CONFIG_FILES.find((file) => existsSync(file))
}

/** Returns the file of --config, else of $NAMEGATE_CONFIG, else undefined. For commands that check policy without a daemon. */
export function namedConfigFile(option: string | undefined): string | undefined {
  const file = option ?? process.env['NAMEGATE_CONFIG']
  return file === '' ? undefined : file
}

/** Returns the configuration of findConfigFile, else the built-in defaults. Throws InvalidInputError with the faults of the file. */
export async function readConfig(
  option: string | undefined,
  credentials?: CredentialFolder,
): Promise<Config> {
  const file = findConfigFile(option)
  const { defaultConfig, loadConfig } = await import('../config/load.ts')
  if (file !== undefined) return loadConfig(file, credentials)
  return { ...defaultConfig(), admin: { socket: DEFAULT_SOCKET } }
}

/** Returns the socket of --socket, else of $NAMEGATE_SOCKET. If undefined, the configuration names the socket. */
export function givenSocket(option: string | undefined): SocketPlace | undefined {
  if (option !== undefined) return { path: option }
  const path = process.env['NAMEGATE_SOCKET'] ?? ''
  return path === '' ? undefined : { path, named: 'of $NAMEGATE_SOCKET' }
}
