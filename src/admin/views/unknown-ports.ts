// Finds the policies with port names for pods of other nodes. This node knows which numbers its own pods give a name, and not
// which numbers the pods of other nodes give it. So an allow rule can open a number that such a pod does not mean, and a deny
// rule can leave its number open.

import { qualifiedName } from '../../enforcement/rule-origins.ts'
import type { Rule, RuleAction } from '../../policy/rule.ts'
import type { AdminState } from '../state.ts'
import { someOf } from './rows.ts'
import { canSelectPods } from './unknown-pods.ts'

const WHY = 'this node does not know the port names of pods of other nodes'

/** Returns one sentence about deny rules, and one about allow rules. Empty if pods of other nodes are not read. */
export function unknownPortWarnings({
  cluster,
  policies,
}: Pick<AdminState, 'cluster' | 'policies'>): readonly string[] {
  if (cluster?.collections.some(({ kind }) => kind === 'Peer') !== true) return []
  const sentence = (what: string, ...actions: readonly RuleAction[]): readonly string[] => {
    const names = policies.policies
      .filter(({ rules }) =>
        rules.some((rule) => actions.includes(rule.action) && namesPorts(rule)),
      )
      .map(qualifiedName)
    if (names.length === 0) return []
    return [`${WHY}: ${what} rules of ${someOf(names)} use the numbers that the names have here`]
  }
  return [...sentence('deny', 'deny', 'pass'), ...sentence('allow', 'allow')]
}

/** True for a rule with port names that can select pods of other nodes. */
function namesPorts({ peers, toPorts = [] }: Rule): boolean {
  if (!toPorts.some(({ named, dns }) => named !== undefined && dns === undefined)) return false
  return (
    peers.kind === 'any' ||
    peers.selectors.some(
      (peer) => canSelectPods(peer, []) || (peer.kind === 'entity' && peer.entity === 'all'),
    )
  )
}
