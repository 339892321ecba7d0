// The facts that the prefixes of a policy make. Pure.

import { formatPrefix, type Prefix } from '../core/ip.ts'
import { OWNER_POLICY } from '../ipcache/facts.ts'
import type { Policy } from '../policy/rule.ts'
import type { WantedFact } from './config-facts.ts'
import { qualifiedName } from './rule-origins.ts'

/** Every prefix that a rule names, exceptions included (docs/spec/semantics 3 "CIDR fact"). */
export function cidrFacts(policy: Policy): readonly WantedFact[] {
  const facts: WantedFact[] = []
  for (const { peers } of policy.rules) {
    if (peers.kind !== 'selectors') continue
    for (const peer of peers.selectors) {
      if (peer.kind !== 'cidr') continue
      for (const prefix of [peer.prefix, ...peer.except]) facts.push(factOf(policy, prefix))
    }
  }
  return facts
}

function factOf(policy: Policy, prefix: Prefix): WantedFact {
  const labels = [`cidr:${formatPrefix(prefix)}`]
  return { prefix, kind: OWNER_POLICY, owner: qualifiedName(policy), labels }
}
