// The log of whoever wants none: no line is written, and no package that writes lines is loaded.

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
