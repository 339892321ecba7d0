// Random ClusterNetworkPolicies over the world of random-policy.ts, as internal rules: both tiers, few priorities so that some are
// equal, and rules that overlap.

import type { PeerSelector, Policy, PortRule, Rule } from '../../../src/policy/rule.ts'
import { patternOf, prefixOf } from '../nodes/node.ts'
import type { Random } from './random.ts'
import { PATTERNS, PREFIXES, RANGES } from './random-policy.ts'
import { randomSelector } from './random-selector.ts'

const PRIORITIES = [0, 5, 5, 1000]

/** The policy with number `i`. Its name and the positions of its rules come from this number. */
export function randomTierPolicy(random: Random, i: number): Policy {
  const rules = Array.from({ length: 1 + random.below(4) }, (_, line) =>
    randomRule(random, i, line),
  )
  return {
    name: `policy-${i}`,
    namespace: undefined,
    kind: 'ClusterNetworkPolicy',
    tier: { name: random.pick(['Admin', 'Baseline']), priority: random.pick(PRIORITIES) },
    selector: random.oneIn(5) ? randomSelector(random) : { matchLabels: new Map() },
    rules,
    defaultDeny: false,
    position: { file: `policy-${i}.yaml`, line: 1, column: 1 },
  }
}

function randomRule(random: Random, policy: number, line: number): Rule {
  const action = random.pick(['allow', 'deny', 'pass'] as const)
  const selectors = Array.from({ length: 1 + random.below(2) }, () => randomPeer(random, action))
  return {
    action,
    peers: { kind: 'selectors', selectors },
    toPorts: random.oneIn(3) ? undefined : [randomPorts(random)],
    position: { file: `policy-${policy}.yaml`, line: 10 + line, column: 1 + random.below(50) },
  }
}

function randomPorts(random: Random): PortRule {
  return {
    ports: Array.from({ length: 1 + random.below(2) }, () => random.pick(RANGES)),
    dns: undefined,
  }
}

function randomPeer(random: Random, action: Rule['action']): PeerSelector {
  const kind = random.below(6)
  if (kind < 2 && action === 'allow')
    return { kind: 'fqdn', pattern: patternOf(random.pick(PATTERNS)) }
  if (kind === 5) return { kind: 'endpoints', selector: randomSelector(random) }
  return { kind: 'cidr', prefix: prefixOf(random.pick(PREFIXES)), except: [] }
}
