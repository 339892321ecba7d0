// Writes the log: changes of state and faults. Single queries are not logged, because they are recorded as flows. pino writes lines to
// stderr, as text for people or as JSON. LogFields lists every field of a line, so that a field has one name everywhere. Messages are
// constant texts, and fields hold what varies.
//
// `limited` writes at most one line a minute for each cause. The next line says how many lines were left out. Causes are constant texts.
// The log remembers at most 256 causes, and writes no line for any further cause.

import pino from 'pino'
import type { Clock } from '../core/clock.ts'

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal'

/** Every field that a log line can have. */
export interface LogFields {
  readonly address?: string | undefined
  readonly addresses?: readonly string[] | undefined
  readonly bound?: number | undefined
  readonly cause?: string | undefined
  readonly column?: number | undefined
  readonly count?: number | undefined
  readonly datapath?: string | undefined
  readonly endpoint?: string | undefined
  readonly endpoints?: readonly string[] | undefined
  readonly error?: string | undefined
  readonly fault?: string | undefined
  readonly file?: string | undefined
  readonly hook?: { readonly kind: string; readonly reason?: string } | undefined
  /** The kind of a cluster's objects, such as `Pod`. */
  readonly objects?: string | undefined
  /** The key in the configuration that sets a bound. */
  readonly limit?: string | undefined
  readonly line?: number | undefined
  readonly milliseconds?: number | undefined
  readonly mode?: string | undefined
  readonly name?: string | undefined
  readonly path?: string | undefined
  readonly pid?: number | undefined
  readonly policies?: string | undefined
  readonly port?: number | undefined
  readonly reason?: string | undefined
  readonly revision?: number | undefined
  readonly server?: string | undefined
  readonly signal?: string | undefined
  /** How many lines with this cause were left out since the last line with this cause. */
  readonly suppressed?: number | undefined
  readonly version?: string | undefined
}

export interface Log {
  debug(fields: LogFields, message: string): void
  info(fields: LogFields, message: string): void
  warn(fields: LogFields, message: string): void
  error(fields: LogFields, message: string): void
  /** Writes a warning, at most once a minute for each cause. */
  limited(cause: string, fields: LogFields, message: string): void
  /** Writes buffered lines. Must be called before the process ends. */
  flush(): void
}

export interface LogOptions {
  readonly level: LogLevel
  readonly format: 'pretty' | 'json'
  readonly clock: Clock
  /** True for colours in pretty lines. */
  readonly colours?: boolean
  /** Receives each line. Without this function, lines are written to stderr. */
  readonly write?: (line: string) => void
}

const LIMITED_MS = 60_000
const CAUSES_MAX = 256
const STDERR = 2

interface Limited {
  readonly since: number
  suppressed: number
}

/** Opens the log. Loads pino-pretty only for the format `pretty`. */
export async function openLog(options: LogOptions): Promise<Log> {
  const { level, format, clock } = options
  // Asynchronous, so that the daemon does not stop when the reader of stderr stops reading.
  const stderr = options.write === undefined ? pino.destination({ fd: STDERR, sync: false }) : null
  const write = options.write ?? ((line: string) => void stderr?.write(line))
  const pretty = format === 'pretty' ? await prettyLines(options.colours ?? false) : plain
  const logger = pino(
    { level, base: null, timestamp: pino.stdTimeFunctions.isoTime },
    { write: (line: string) => write(pretty(line)) },
  )
  const limiter = new Limiter(clock)
  return {
    debug: (fields, message) => logger.debug(fields, message),
    info: (fields, message) => logger.info(fields, message),
    warn: (fields, message) => logger.warn(fields, message),
    error: (fields, message) => logger.error(fields, message),
    limited(cause, fields, message) {
      const suppressed = limiter.admit(cause)
      if (suppressed === undefined) return
      logger.warn(
        suppressed === 0 ? { ...fields, cause } : { ...fields, cause, suppressed },
        message,
      )
    },
    flush: () => stderr?.flushSync(),
  }
}

function plain(line: string): string {
  return line
}

async function prettyLines(colorize: boolean): Promise<(line: string) => string> {
  const { prettyFactory } = await import('pino-pretty')
  const pretty = prettyFactory({
    colorize,
    singleLine: true,
    translateTime: 'yyyy-mm-dd HH:MM:ss.l',
  })
  return (line) => pretty(line)
}

/** Remembers which causes were logged in the last minute. */
class Limiter {
  readonly #clock: Clock
  readonly #causes = new Map<string, Limited>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Returns how many lines of this cause were left out before this line, or undefined when this line must be left out too. */
  admit(cause: string): number | undefined {
    const now = this.#clock.now()
    const last = this.#causes.get(cause)
    if (last !== undefined && now - last.since < LIMITED_MS) {
      last.suppressed++
      return undefined
    }
    if (last === undefined && this.#causes.size >= CAUSES_MAX) return undefined
    this.#causes.set(cause, { since: now, suppressed: 0 })
    return last?.suppressed ?? 0
  }
}
