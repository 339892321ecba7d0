// Random policies over a small world, so that rules overlap: names under shared patterns, prefixes inside one another, exceptions,
// denies, ranges. They are internal rules, as the loader makes them from files.

import { ANY_PROTOCOL, SCTP, TCP, UDP, type PortRange } from '../../../src/core/protocol.ts'
import type { Entity, PeerSelector, Policy, PortRule, Rule } from '../../../src/policy/rule.ts'
import { patternOf, prefixOf } from '../nodes/node.ts'
import type { Random } from './random.ts'
import { randomSelector } from './random-selector.ts'

export const NAMES = ['a.x', 'b.x', 'c.x', 'd.y', 'e.y', 'a.b.x'] as const
export const PATTERNS = ['a.x', 'b.x', '*.x', '**.x', '*.y', 'e.y', '*']
export const PREFIXES = [
  '0.0.0.0/0',
  '198.18.0.0/15',
  '198.18.0.0/24',
  '198.18.0.0/28',
  '198.18.0.8/29',
  '198.18.0.3/32',
  '::/0',
  '2001:db8::/32',
  '2001:db8::/124',
  '2001:db8::3/128',
]
export const ENTITIES: readonly Entity[] = [
  'host',
  'cluster',
  'world',
  'world-ipv4',
  'world-ipv6',
  'all',
  'none',
]
export const PORTS: readonly (readonly [port: number, protocol: number])[] = [
  [443, TCP],
  [80, TCP],
  [8080, TCP],
  [443, UDP],
  [9, SCTP],
  [0, 1],
]
export const RANGES: readonly PortRange[] = [
  { protocol: TCP, low: 443, high: 443 },
  { protocol: TCP, low: 80, high: 90 },
  { protocol: TCP, low: 0, high: 65_535 },
  { protocol: TCP, low: 400, high: 9000 },
  { protocol: UDP, low: 443, high: 443 },
  { protocol: UDP, low: 1, high: 65_535 },
  { protocol: SCTP, low: 0, high: 65_535 },
]

export function randomPolicies(random: Random, count: number): readonly Policy[] {
  return Array.from({ length: count }, (_, i) => randomPolicy(random, i))
}

/** The policy with number `i`. Its name and the positions of its rules come from this number. */
export function randomPolicy(random: Random, i: number): Policy {
  const rules = Array.from({ length: random.below(4) }, (_, line) => randomRule(random, i, line))
  return {
    name: `policy-${i}`,
    namespace: undefined,
    kind: 'CiliumClusterwideNetworkPolicy',
    selector: random.oneIn(5)
      ? randomSelector(random)
      : { matchLabels: new Map(random.oneIn(3) ? [['app', random.pick(['a', 'b'])]] : []) },
    rules,
    defaultDeny: !random.oneIn(4),
    ...(random.oneIn(3) && { audited: true }),
    position: { file: `policy-${i}.yaml`, line: 1, column: 1 },
  }
}

function randomRule(random: Random, policy: number, line: number): Rule {
  const action = random.oneIn(3) ? 'deny' : 'allow'
  const toPorts = random.oneIn(2) ? undefined : [randomPorts(random)]
  const position = { file: `policy-${policy}.yaml`, line: 10 + line, column: 1 + random.below(50) }
  if (random.oneIn(10) && toPorts !== undefined) {
    return { action, peers: { kind: 'any' }, toPorts, position }
  }
  const selectors = Array.from({ length: random.below(3) }, () => randomPeer(random, action))
  return { action, peers: { kind: 'selectors', selectors }, toPorts, position }
}

function randomPorts(random: Random): PortRule {
  const ports = Array.from({ length: 1 + random.below(2) }, () => random.pick(RANGES))
  const dns = random.oneIn(8) ? [patternOf('*')] : undefined
  return {
    ports: random.oneIn(12) ? [{ protocol: ANY_PROTOCOL, low: 0, high: 65_535 }] : ports,
    dns,
  }
}

function randomPeer(random: Random, action: Rule['action']): PeerSelector {
  const kind = random.below(7)
  if (kind === 6) return { kind: 'endpoints', selector: randomSelector(random) }
  if (kind < 3 && action === 'allow')
    return { kind: 'fqdn', pattern: patternOf(random.pick(PATTERNS)) }
  if (kind === 5) return { kind: 'entity', entity: random.pick(ENTITIES) }
  const prefix = prefixOf(random.pick(PREFIXES))
  const inner = PREFIXES.map(prefixOf).filter(
    (each) => each.family === prefix.family && each.length > prefix.length,
  )
  const except = random.oneIn(2) && inner.length > 0 ? [random.pick(inner)] : []
  return { kind: 'cidr', prefix, except }
}
