// The Status objects of the API server, as observed.

export interface Status {
  readonly kind: 'Status'
  readonly apiVersion: 'v1'
  readonly status: 'Failure'
  readonly code: number
  readonly reason: string
  readonly message: string
  readonly metadata: Readonly<Record<string, unknown>>
  readonly details?: unknown
}

function make(code: number, reason: string, message: string, more: Partial<Status> = {}): Status {
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    reason,
    code,
    ...more,
  }
}

export const status = {
  make,
  tooOld: (from: number, compacted: number): Status =>
    make(410, 'Expired', `too old resource version: ${from} (${compacted})`),
  tooLarge: (version: number, current: number): Status =>
    make(504, 'Timeout', `Too large resource version: ${version}, current: ${current}`, {
      details: {
        causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
        retryAfterSeconds: 1,
      },
    }),
  forbidden: (verb: string, resource: string, group: string): Status =>
    make(
      403,
      'Forbidden',
      `${resource} is forbidden: User "system:serviceaccount:namegate:namegate" cannot ${verb} resource "${resource}" in API group "${group}" at the cluster scope`,
    ),
  unauthorized: (): Status => make(401, 'Unauthorized', 'Unauthorized'),
  noPath: (): Status => make(404, 'NotFound', 'the server could not find the requested resource'),
  notFound: (resource: string, name: string): Status =>
    make(404, 'NotFound', `${resource} "${name}" not found`),
  conflict: (name: string): Status =>
    make(
      409,
      'Conflict',
      `Operation cannot be fulfilled on "${name}": the object has been modified`,
    ),
  continueExpired: (next: string): Status =>
    make(
      410,
      'Expired',
      'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results.',
      { metadata: { continue: next } },
    ),
  invalid: (message: string): Status => make(422, 'Invalid', message),
  badRequest: (message: string): Status => make(400, 'BadRequest', message),
  tooMany: (): Status =>
    make(429, 'TooManyRequests', 'storage is (re)initializing', {
      details: { retryAfterSeconds: 1 },
    }),
}
