// What lint tells: a place, a code that stays the same, a sentence about what is doubtful and one about what to do.

import type { Position } from '../core/errors.ts'

export const LINT_CODES = [
  /** A selector that nothing can match. */
  'never-matches',
  /** A pattern that other engines read otherwise. */
  'engines-differ',
  /** A rule whose every peer and port a deny rule takes back. */
  'shadowed-by-deny',
  /** A wildcard that covers what stands beside it, or much more than that. */
  'wider-than-siblings',
  /** A selector that every address, name or workload fits. */
  'allows-all',
  /** A name that another selector's name is an alias of. */
  'cname-target',
  /** A name of a Service inside the cluster. */
  'cluster-service',
  /** A text that is read otherwise than it looks, as in Cilium. */
  'read-as',
  /** Names that may be asked over one of UDP and TCP alone. */
  'one-transport',
  /** A policy that selects none of the endpoints given, or a deny rule with a peer that does. */
  'selects-nothing',
] as const

export type LintCode = (typeof LINT_CODES)[number]

export interface Finding {
  readonly position: Position
  readonly code: LintCode
  /** What is doubtful, without full stop. */
  readonly message: string
  /** What to do, without full stop. */
  readonly remedy: string
}

/** In the order of the files. */
export function compareFindings(a: Finding, b: Finding): number {
  const { position: p } = a
  const { position: q } = b
  if (p.file !== q.file) return p.file < q.file ? -1 : 1
  return p.line - q.line || p.column - q.column
}
