// A log that writes nothing, and loads no package that would.

import type { Log } from './log.ts'

/** A log that nobody reads. */
export const SILENT: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  limited: () => undefined,
  flush: () => undefined,
}
