// Policies as texts, and the findings of lint as `line:column code`.

import assert from 'node:assert/strict'
import { formatFault, type Fault } from '../../../src/core/errors.ts'
import { lint, type LintInput } from '../../../src/lint/lint.ts'
import { writtenNames } from '../../../src/lint/written-names.ts'
import { loadPolicies } from '../../../src/policy/load/load.ts'

/** A policy of namespace prod with this `spec`. */
export function mkFile(spec: string, more = ''): string {
  return `apiVersion: cilium.io/v2\nkind: CiliumNetworkPolicy\nmetadata: { name: p, namespace: prod }\nspec: ${spec}\n${more}`
}

export function lintText(text: string, options: Partial<LintInput> = {}): readonly string[] {
  const notes: Fault[] = []
  const { policies, faults } = loadPolicies(text, 'p.yaml', { notes })
  assert.deepEqual(faults.map(formatFault), [])
  const names = writtenNames(text, 'p.yaml')
  const base = { policies, names, notes, endpoints: undefined, aliases: undefined, portable: false }
  return lint({ ...base, ...options }).map(
    ({ position, code }) => `${position.line}:${position.column} ${code}`,
  )
}
