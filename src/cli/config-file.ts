// Finds the configuration and the socket that a command uses. Loads little, because break glass needs it. bin/namegate searches for
// the configuration in the same order.

import { existsSync } from 'node:fs'

/** In the working directory, and where the units have it. */
export const CONFIG_FILES = ['config/namegate.yaml', '/etc/namegate/namegate.yaml'] as const
/** Where the units have it. */
export const DEFAULT_SOCKET = '/run/namegate/admin.sock'

/** The file of --config, of $NAMEGATE_CONFIG, or the first of CONFIG_FILES that is there; undefined when none is. */
export function findConfigFile(given: string | undefined): string | undefined {
  const named = given ?? process.env['NAMEGATE_CONFIG']
  return named === undefined || named === '' ? CONFIG_FILES.find((file) => existsSync(file)) : named
}

/** Where the daemon is, and what says so, as `of config/namegate.yaml`. */
export interface SocketPlace {
  readonly path: string
  readonly named: string
}

/** The socket of --socket or of $NAMEGATE_SOCKET; undefined: the configuration says it. */
export function givenSocket(option: string | undefined): SocketPlace | undefined {
  if (option !== undefined) return { path: option, named: 'of --socket' }
  const path = process.env['NAMEGATE_SOCKET'] ?? ''
  return path === '' ? undefined : { path, named: 'of $NAMEGATE_SOCKET' }
}
