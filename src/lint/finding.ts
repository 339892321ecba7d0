// This file defines a finding of lint: a place, a code that never changes between versions, a message about the doubt, and a remedy.

import type { Position } from '../core/errors.ts'

export const LINT_CODES = [
  /** A name, pattern or selector that nothing can match. */
  'never-matches',
  /** A pattern that has another meaning in other policy engines. */
  'engines-differ',
  /** An allow rule for which deny rules deny every peer and port. */
  'shadowed-by-deny',
  /** A pattern that already matches other names of its list, or that is far wider than these names. */
  'wider-than-siblings',
  /** A selector that selects every address, name or workload. */
  'allows-all',
  /** A name that is the CNAME target of another selector's name. */
  'cname-target',
  /** A name of a Service inside the cluster. */
  'cluster-service',
  /** A text that a reader can easily misunderstand. Its meaning is the meaning in Cilium. */
  'read-as',
  /** Names that can be asked over UDP but not over TCP, or over TCP but not over UDP. */
  'one-transport',
  /** Names under `toFQDNs` that no rule lets the endpoints ask. */
  'never-asked',
  /** A policy that selects none of the given endpoints, or a deny rule with a peer that selects no given endpoint or resource. */
  'selects-nothing',
  /** Several ClusterNetworkPolicies of one tier have one priority and different actions. */
  'same-priority',
] as const

export type LintCode = (typeof LINT_CODES)[number]

export interface Finding {
  readonly position: Position
  readonly code: LintCode
  /** What is doubtful, without a full stop at the end. */
  readonly message: string
  /** What to do, without a full stop at the end. */
  readonly remedy: string
}

/** Compares two findings by file name, line and column. */
export function compareFindings(a: Finding, b: Finding): number {
  const { position: p } = a
  const { position: q } = b
  if (p.file !== q.file) return p.file < q.file ? -1 : 1
  return p.line - q.line || p.column - q.column
}
