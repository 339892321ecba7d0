// Defines faults and the error classes that callers treat differently. Everything that is expected is a value, not an error.

/** A place in a text that a person wrote. Lines and columns begin at 1. Both are 0 for an object that a program gave. */
export interface Position {
  readonly file: string
  readonly line: number
  readonly column: number
}

/** One fault in a file: its place, and a message that says what was found and what was expected. */
export interface Fault {
  readonly position: Position
  readonly message: string
}

/** Formats a fault as `file:line:col: message`, which editors can follow. A fault of an object is `name: message`. */
export function formatFault(fault: Fault): string {
  const { file, line, column } = fault.position
  return line === 0 ? `${file}: ${fault.message}` : `${file}:${line}:${column}: ${fault.message}`
}

/** Formats a place inside a message: `file:line`, or the name of an object. */
export function formatPlace({ file, line }: Position): string {
  return line === 0 ? file : `${file}:${line}`
}

/** Says of a file with a fault that it can be why something is refused. */
export function notInForce(fault: Fault): string {
  return `a file has a fault, so its present text is not in force: ${formatFault(fault)}`
}

/** Reports input that a person must correct. The command ends with exit code 2. */
export class InvalidInputError extends Error {
  override readonly name = 'InvalidInputError'
  readonly faults: readonly Fault[]

  constructor(faults: readonly Fault[]) {
    super(faults.map(formatFault).join('\n'))
    this.faults = faults
  }
}

/** Reports that the environment refuses (privilege, port, kernel, no daemon). The message names the remedy. Exit code 3. */
export class UnavailableError extends Error {
  override readonly name = 'UnavailableError'
}

/** The message of a thrown value, which may be no Error. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** The code of the system call that failed (such as `EROFS`), from the error or its cause. Undefined when there is none. */
export function systemCodeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  return 'code' in error ? String(error.code) : systemCodeOf(error.cause)
}

/** Reports wrong use of the command line. Exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}
