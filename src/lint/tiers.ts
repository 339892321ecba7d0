// `lintTiers` finds ClusterNetworkPolicies of one tier with equal priority and different actions. Their API leaves open which of them decides.

import { formatPlace } from '../core/errors.ts'
import type { Policy } from '../policy/rule.ts'
import type { Finding } from './finding.ts'

/** Returns one finding for each policy after the first of its tier and priority, if their rules have different actions. */
export function lintTiers(policies: readonly Policy[]): readonly Finding[] {
  const firsts = new Map<string, Policy>()
  return policies.flatMap((policy): readonly Finding[] => {
    const { tier, position } = policy
    if (tier === undefined) return []
    const key = `${tier.name} ${tier.priority}`
    const first = firsts.get(key)
    if (first === undefined) {
      firsts.set(key, policy)
      return []
    }
    const actions = new Set([...first.rules, ...policy.rules].map(({ action }) => action))
    if (actions.size < 2) return []
    const at = formatPlace(first.position)
    const message = `tier ${tier.name} has priority ${tier.priority} twice, first at ${at}; the API leaves open which policy decides, and here deny wins over pass, and pass over accept`
    return [
      {
        position,
        code: 'same-priority',
        message,
        remedy: 'give each policy a priority of its own',
      },
    ]
  })
}
