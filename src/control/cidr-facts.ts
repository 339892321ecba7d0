// The facts that the prefixes of a policy make. Pure.

import { formatPrefix } from '../core/ip.ts'
import { OWNER_POLICY } from '../ipcache/facts.ts'
import type { Policy } from '../policy/rule.ts'
import type { WantedFact } from './config-facts.ts'
import { qualifiedName } from './rule-origins.ts'

/** Every prefix that a rule names, exceptions included (SEMANTICS 3 "CIDR fact"). */
export function cidrFacts(policy: Policy): readonly WantedFact[] {
  const owner = qualifiedName(policy)
  return policy.rules.flatMap((rule) => {
    if (rule.peers.kind !== 'selectors') return []
    return rule.peers.selectors.flatMap((peer) => {
      if (peer.kind !== 'cidr') return []
      return [peer.prefix, ...peer.except].map((prefix) => ({
        prefix,
        kind: OWNER_POLICY,
        owner,
        labels: [`cidr:${formatPrefix(prefix)}`],
      }))
    })
  })
}
