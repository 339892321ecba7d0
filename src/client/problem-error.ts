// The error that a daemon answered with a problem (RFC 9457).

import type { Problem } from './api-types.ts'

/** The daemon refused a request. `problem.detail` says why, and `problem.type` is a word for programs. */
export class ProblemError extends Error {
  override readonly name = 'ProblemError'
  readonly status: number
  readonly problem: Problem

  constructor(problem: Problem) {
    super(problem.detail)
    this.status = problem.status
    this.problem = problem
  }
}

/** Reads the body of a response that is an error. A body of another form gives a problem of the type `about:blank`. */
export function problemIn(status: number, path: string, body: string): ProblemError {
  const fields = fieldsIn(body)
  const text = (name: string): string | undefined => {
    const value = fields.get(name)
    return typeof value === 'string' ? value : undefined
  }
  const detail = text('detail') ?? text('error') ?? `the daemon answered with status ${status}`
  const type = text('type') ?? 'about:blank'
  const title = text('title') ?? `Status ${status}`
  const instance = text('instance') ?? path
  const faults = fields.get('faults')
  const listed = Array.isArray(faults) ? { faults: faults.flatMap(faultIn) } : {}
  return new ProblemError({ type, title, status, detail, instance, ...listed, error: detail })
}

function faultIn(value: unknown): NonNullable<Problem['faults']> {
  if (typeof value !== 'object' || value === null) return []
  const { message, file, line, column } = { ...NO_FAULT, ...value }
  if (typeof message !== 'string') return []
  return [
    {
      message,
      ...(typeof file === 'string' ? { file } : {}),
      ...(typeof line === 'number' ? { line } : {}),
      ...(typeof column === 'number' ? { column } : {}),
    },
  ]
}

const NO_FAULT: Readonly<Record<'message' | 'file' | 'line' | 'column', unknown>> = {
  message: undefined,
  file: undefined,
  line: undefined,
  column: undefined,
}

function fieldsIn(body: string): ReadonlyMap<string, unknown> {
  try {
    const parsed: unknown = JSON.parse(body)
    if (typeof parsed === 'object' && parsed !== null) return new Map(Object.entries(parsed))
  } catch {
    // The body comes from another kind of server, or is not complete. The status is enough.
  }
  return new Map()
}
