// Doubtful policies: valid, but hardly intended. Pure; a finding never stops a policy from being loaded.

import type { Fault } from '../core/errors.ts'
import type { Policy } from '../policy/rule.ts'
import { lintAliases, type Aliases } from './aliases.ts'
import { compareFindings, type Finding } from './finding.ts'
import { lintNames } from './names.ts'
import { lintDenies, lintRulePeers, lintSelector } from './selection.ts'
import { lintShadows } from './shadow.ts'
import { lintSiblings } from './siblings.ts'
import { lintTransports } from './transports.ts'
import type { NameList } from './written-names.ts'

export interface LintInput {
  readonly policies: readonly Policy[]
  /** Names of all their files as they were written. */
  readonly names: readonly NameList[]
  /** Labels of each endpoint; undefined: not known. */
  readonly endpoints: readonly (readonly string[])[] | undefined
  /** Of each external resource, which peers may select as well. */
  readonly resources?: readonly (readonly string[])[]
  /** Recorded chains; undefined: not known. */
  readonly aliases: Aliases | undefined
  readonly portable: boolean
  /** What the loader read otherwise than it looks. */
  readonly notes: readonly Fault[]
}

/** All findings in the order of the files. */
export function lint(input: LintInput): readonly Finding[] {
  const { policies, names, endpoints, resources = [], aliases, notes } = input
  return [
    ...notes.map(readAs),
    ...names.flatMap((list) => [...lintNames(list, input), ...lintSiblings(list)]),
    ...(aliases === undefined ? [] : lintAliases(names, aliases)),
    ...policies.flatMap((policy) => lintSelector(policy, endpoints)),
    ...policies.flatMap(({ rules }) => rules.flatMap(lintRulePeers)),
    ...(endpoints === undefined ? [] : lintDenies(policies, [...endpoints, ...resources])),
    ...policies.flatMap(lintTransports),
    ...lintShadows(policies),
  ].sort(compareFindings)
}

function readAs({ position, message }: Fault): Finding {
  const remedy = 'write what is meant; Cilium reads it alike'
  return { position, code: 'read-as', message, remedy }
}
