// Defines the problems that the admin API reports, and makes their bodies: `application/problem+json` (RFC 9457). The type of a problem is
// a URN that a program can compare. The title says the same in words, and `detail` says what happened this time.

import type { ProblemShape } from './document/shapes.ts'

export const PROBLEM_TYPE = 'application/problem+json'
const URN = 'urn:namegate:problem:'

/** All problems, by the last part of their type. */
export const PROBLEMS = {
  'invalid-request': { status: 400, title: 'The path, a parameter or the body is invalid' },
  'foreign-origin': {
    status: 403,
    title: 'A browser sent the request, and it is not for the page',
  },
  'foreign-host': { status: 421, title: 'The header Host has a name of another host' },
  'unknown-path': { status: 404, title: 'There is no such path' },
  'unknown-endpoint': { status: 404, title: 'There is no such endpoint' },
  'unknown-resource': { status: 404, title: 'There is no such resource' },
  'method-not-allowed': { status: 405, title: 'The path has no such method' },
  'not-acceptable': { status: 406, title: 'The header Accept excludes the type of the answer' },
  conflict: { status: 409, title: 'The state of the daemon does not allow the request' },
  'precondition-failed': {
    status: 412,
    title: 'The object is not as If-Match or If-None-Match say',
  },
  'body-too-large': { status: 413, title: 'The body is too long' },
  'unsupported-media-type': { status: 415, title: 'The body is not JSON' },
  'internal-error': { status: 500, title: 'The daemon failed' },
  'not-kept': { status: 500, title: 'The change is in force, but not saved' },
  unavailable: { status: 503, title: 'The daemon cannot answer yet' },
} as const

export type ProblemKind = keyof typeof PROBLEMS
export type ProblemFault = NonNullable<ProblemShape['faults']>[number]

/** A problem of one request. */
export interface Problem {
  readonly kind: ProblemKind
  readonly detail: string
  readonly faults?: readonly ProblemFault[] | undefined
}

/** Returns the body of the response. `instance` is the path of the request. */
export function problemBody({ kind, detail, faults }: Problem, instance: string): ProblemShape {
  const { status, title } = PROBLEMS[kind]
  const members = { type: `${URN}${kind}`, title, status, detail, instance }
  return { ...members, ...(faults === undefined ? {} : { faults }), error: detail }
}
