// The error classes that some caller treats differently. Everything expected is a value instead.

/** A place in a text that a person wrote. Lines and columns count from 1; 0 in what a program gave as an object. */
export interface Position {
  readonly file: string
  readonly line: number
  readonly column: number
}

/** One fault in a file: where, what was found and what was expected. */
export interface Fault {
  readonly position: Position
  readonly message: string
}

/** `file:line:col: message`, the form that editors jump to; `name: message` of an object. */
export function formatFault(fault: Fault): string {
  const { file, line, column } = fault.position
  return line === 0 ? `${file}: ${fault.message}` : `${file}:${line}:${column}: ${fault.message}`
}

/** Where something stood first, inside a message: `file:line`, or the name of an object. */
export function formatPlace({ file, line }: Position): string {
  return line === 0 ? file : `${file}:${line}`
}

/** Input that a person must correct; the command ends with exit code 2. */
export class InvalidInputError extends Error {
  override readonly name = 'InvalidInputError'
  readonly faults: readonly Fault[]

  constructor(faults: readonly Fault[]) {
    super(faults.map(formatFault).join('\n'))
    this.faults = faults
  }
}

/** The environment refuses (privilege, port, kernel, no daemon); the message names the remedy; exit code 3. */
export class UnavailableError extends Error {
  override readonly name = 'UnavailableError'
}

/** What a thrown thing says, be it an Error or not. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** The code of the system call that failed (`EROFS`), as the error or its cause has it; undefined: there is none. */
export function systemCodeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  return 'code' in error ? String(error.code) : systemCodeOf(error.cause)
}

/** Wrong use of the command line; exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}
