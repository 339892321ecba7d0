// Policies with and without tiers that select peers by names and entities, as arbitraries of fast-check. `naive` reads the text of the
// API literally: what these policies decide about one packet.

import fc from 'fast-check'
import { identity } from '../../../src/core/ids.ts'
import { TCP, UDP } from '../../../src/core/protocol.ts'
import { ENDPOINT_CLASS, RESOURCE_CLASS } from '../../../src/identity/reserved.ts'
import { coversClass } from '../../../src/policy/compile/compile.ts'
import type { DefaultEgress } from '../../../src/policy/compile/default-egress.ts'
import type { Entity, PeerSelector, Policy, Rule } from '../../../src/policy/rule.ts'
import { patternOf } from '../nodes/node.ts'

const NAMES = ['a.x', 'b.x', 'c.x'] as const
export const ENTITIES: readonly Entity[] = ['host', 'cluster', 'world', 'world-ipv4', 'all']
export const POSITION = { file: 'p', line: 1, column: 1 }

const ports = fc.option(
  fc.array(
    fc.constantFrom(
      { protocol: TCP, low: 25, high: 25 },
      { protocol: TCP, low: 443, high: 443 },
      { protocol: TCP, low: 0, high: 65_535 },
      { protocol: TCP, low: 20, high: 500 },
      { protocol: UDP, low: 400, high: 500 },
    ),
    { minLength: 1, maxLength: 2 },
  ),
  { nil: undefined },
)
const name = fc.constantFrom(...NAMES).map((each): PeerSelector => {
  return { kind: 'fqdn', pattern: patternOf(each) }
})
const entity = fc.constantFrom(...ENTITIES).map((each): PeerSelector => {
  return { kind: 'entity', entity: each }
})

function ruleOf(
  action: fc.Arbitrary<Rule['action']>,
  peer: fc.Arbitrary<PeerSelector>,
): fc.Arbitrary<Rule> {
  const selectors = fc.array(peer, { minLength: 1, maxLength: 2 })
  return fc.record({ action, selectors, ranges: ports }).map(({ ranges, ...rule }) => ({
    action: rule.action,
    peers: { kind: 'selectors', selectors: rule.selectors },
    toPorts: ranges && [{ ports: ranges, dns: undefined }],
    position: POSITION,
  }))
}

export function policyOf(
  parts: Pick<Policy, 'rules' | 'defaultDeny' | 'tier' | 'audited'>,
): Policy {
  const selector = { matchLabels: new Map<string, string>() }
  return {
    name: 'p',
    namespace: undefined,
    kind: 'NetworkPolicy',
    selector,
    position: POSITION,
    ...parts,
  }
}

// Deny and Pass rules of tiers select by names here like by any other label, because the datapath knows only identities.
export const tierPolicy = fc
  .record({
    name: fc.constantFrom('Admin' as const, 'Baseline' as const),
    priority: fc.nat(2),
    rules: fc.array(ruleOf(fc.constantFrom('allow', 'deny', 'pass'), name), { maxLength: 4 }),
  })
  .map(({ rules, ...tier }) => policyOf({ rules, tier, defaultDeny: false }))
export const plainPolicy = fc
  .record({
    rules: fc.array(ruleOf(fc.constantFrom('allow', 'deny'), fc.oneof(name, entity)), {
      maxLength: 3,
    }),
    defaultDeny: fc.boolean(),
    audited: fc.boolean(),
  })
  .map(({ audited, ...parts }) => policyOf({ ...parts, ...(audited && { audited }) }))

export interface Packet {
  readonly names: readonly string[]
  readonly addressClass: number
  readonly protocol: number
  readonly port: number
}

function covers({ peers, toPorts }: Rule, packet: Packet): boolean {
  const isPeer =
    peers.kind === 'selectors' &&
    peers.selectors.some((peer) =>
      peer.kind === 'fqdn'
        ? packet.names.includes(peer.pattern.text)
        : peer.kind === 'entity' && coversClass(peer.entity, identity(packet.addressClass)),
    )
  const ranges = toPorts?.flatMap((each) => each.ports)
  const { protocol, port } = packet
  const isPort =
    ranges?.some((each) => each.protocol === protocol && each.low <= port && port <= each.high) ??
    true
  return isPeer && isPort
}

/** The text of the API, sentence by sentence, and then the endpoint's default. */
export function naive(policies: readonly Policy[], egress: DefaultEgress, packet: Packet): boolean {
  const inTier = (tier: string): Rule['action'] | undefined => {
    for (const priority of [0, 1, 2]) {
      const actions = policies
        .filter((each) => each.tier?.name === tier && each.tier.priority === priority)
        .flatMap(({ rules }) => rules.find((rule) => covers(rule, packet))?.action ?? [])
      for (const each of ['deny', 'pass', 'allow'] as const) if (actions.includes(each)) return each
    }
    return undefined
  }
  const admin = inTier('Admin')
  if (admin === 'allow' || admin === 'deny') return admin === 'allow'
  const plain = policies.filter(({ tier }) => tier === undefined)
  const matching = (of: readonly Policy[], action: string): boolean =>
    of.some(({ rules }) => rules.some((each) => each.action === action && covers(each, packet)))
  const enforced = plain.filter(({ audited }) => audited !== true)
  if (matching(enforced, 'deny')) return false
  if (matching(plain, 'allow')) return true
  if (enforced.some(({ defaultDeny }) => defaultDeny)) return false
  const baseline = inTier('Baseline')
  if (baseline === 'allow' || baseline === 'deny') return baseline === 'allow'
  const isKnown = packet.addressClass === ENDPOINT_CLASS || packet.addressClass === RESOURCE_CLASS
  return egress === 'allow' || egress === 'audit' || (egress === 'allow-known' && isKnown)
}
