// A log that writes nothing. SILENT has its own file, so that its users do not load pino.

import type { Log } from './log.ts'

export const SILENT: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  limited: () => undefined,
  flush: () => undefined,
}
