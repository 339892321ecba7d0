// Random policies that can be written as objects, over a world so small that prefixes, exceptions, names and port ranges overlap. Also
// packets at the edges of everything that these policies name.

import {
  formatPrefix,
  truncatePrefix,
  widthOf,
  type Family,
  type Prefix,
} from '../../../src/core/ip.ts'
import { PORT_PROTOCOLS, SCTP, TCP, UDP, type PortRange } from '../../../src/core/protocol.ts'
import type { PeerSelector, Policy, PortRule, Rule } from '../../../src/policy/rule.ts'
import { patternOf, prefixOf } from '../nodes/node.ts'
import type { Random } from './random.ts'
import { ENTITIES } from './random-policy.ts'
import { randomSelector } from './random-selector.ts'

const NAMESPACE = 'k8s:io.kubernetes.pod.namespace'

const PATTERNS = ['a.x', 'b.x', 'd.y', '*.x', '**.x', '*.y', '*', '*.b.x', 'a*.x'].map(patternOf)
const LENGTHS = {
  4: [0, 8, 15, 16, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32],
  6: [0, 3, 32, 48, 64, 112, 120, 121, 122, 123, 124, 125, 126, 127, 128],
} as const
const PORTS = [1, 22, 53, 80, 443, 444, 1023, 1024, 8080, 32_768, 65_534, 65_535]
const LAST_PORT = 65_535

/** The destination of a packet. */
export interface Target {
  readonly peer: Prefix
  readonly protocol: number
  readonly port: number
}

/** One of the few hundred addresses around which most prefixes are made. */
export function randomAddress(random: Random, family: Family = random.oneIn(2) ? 4 : 6): Prefix {
  const [block, host] = [random.below(2), random.below(64)]
  return prefixOf(
    family === 4 ? `198.18.${block}.${host}` : `2001:db8::${block}:${host.toString(16)}`,
  )
}

export function randomDocument(random: Random, name: string): Policy {
  const isClusterwide = random.oneIn(2)
  const namespace = isClusterwide ? undefined : 'default'
  const rules = Array.from({ length: random.below(4) }, () => randomRule(random, namespace))
  return {
    name,
    namespace,
    kind: isClusterwide ? 'CiliumClusterwideNetworkPolicy' : 'CiliumNetworkPolicy',
    selector: random.oneIn(4)
      ? randomSelector(random)
      : { matchLabels: new Map(random.oneIn(2) ? [['app', random.pick(['a', 'b'])]] : []) },
    // The document has them in two lists.
    rules: [...rules.filter(isAllow), ...rules.filter((rule) => !isAllow(rule))],
    defaultDeny: !random.oneIn(5),
    ...(random.oneIn(3) && { audited: true }),
    position: { file: 'policy.yaml', line: 1, column: 1 },
  }
}

function isAllow({ action }: Rule): boolean {
  return action === 'allow'
}

function randomRule(random: Random, namespace: string | undefined): Rule {
  // The loader adds this to a selector without a namespace.
  const own = namespace === undefined ? [] : [[NAMESPACE, namespace] as const]
  const action = random.oneIn(3) ? 'deny' : 'allow'
  const anyPeer = random.oneIn(10)
  const toPorts =
    random.oneIn(3) && !anyPeer
      ? undefined
      : Array.from({ length: 1 + random.below(2) }, () => randomPorts(random, action))
  const position = { file: 'policy.yaml', line: 1, column: 1 }
  if (anyPeer) return { action, peers: { kind: 'any' }, toPorts, position }
  const make = random.pick([
    (): PeerSelector => randomCidr(random),
    (): PeerSelector => randomCidr(random),
    (): PeerSelector => ({ kind: 'entity', entity: random.pick(ENTITIES) }),
    (): PeerSelector => ({ kind: 'endpoints', selector: randomSelector(random, own) }),
    ...(action === 'deny'
      ? []
      : [1, 2, 3].map(() => (): PeerSelector => {
          return { kind: 'fqdn', pattern: random.pick(PATTERNS) }
        })),
  ])
  const selectors = Array.from({ length: random.below(4) }, make)
  return { action, peers: { kind: 'selectors', selectors }, toPorts, position }
}

function randomCidr(random: Random): PeerSelector {
  const address = randomAddress(random)
  const prefix = truncatePrefix(address, random.pick(LENGTHS[address.family]))
  const except: Prefix[] = []
  for (let i = random.below(3); i > 0; i--) {
    const inner = randomAddress(random, prefix.family)
    const length = random.pick(LENGTHS[prefix.family])
    const candidate = truncatePrefix(inner, length)
    const inside = formatPrefix(truncatePrefix(inner, prefix.length)) === formatPrefix(prefix)
    if (inside && length > prefix.length) except.push(candidate)
  }
  return { kind: 'cidr', prefix, except }
}

function randomPorts(random: Random, action: Rule['action']): PortRule {
  if (action === 'allow' && random.oneIn(6)) {
    const dns = [random.pick(PATTERNS)]
    return { ports: protocolsOf(random).map((protocol) => ({ protocol, low: 53, high: 53 })), dns }
  }
  const ports = Array.from({ length: 1 + random.below(3) }, () => randomRange(random))
  return { ports: ports.flat(), dns: undefined }
}

function protocolsOf(random: Random): readonly number[] {
  return random.pick([[TCP], [TCP], [UDP], [UDP], [SCTP], PORT_PROTOCOLS])
}

function randomRange(random: Random): readonly PortRange[] {
  const low = randomPort(random)
  const width = random.pick([0, 0, 0, 1, random.below(16), random.below(2048), LAST_PORT])
  const every = random.oneIn(8)
  const [from, to] = every ? [0, LAST_PORT] : [low, Math.min(LAST_PORT, low + width)]
  return protocolsOf(random).map((protocol) => ({ protocol, low: from, high: to }))
}

function randomPort(random: Random): number {
  return random.oneIn(3) ? 1 + random.below(LAST_PORT) : random.pick(PORTS)
}

/** Packets for these policies: the peer is at or beside the edge of a prefix, or one of `known`; likewise the port. */
export function randomTargets(
  random: Random,
  policies: readonly Policy[],
  known: readonly Prefix[],
  count: number,
): readonly Target[] {
  const rules = policies.flatMap((policy) => policy.rules)
  const prefixes = rules.flatMap(({ peers }) =>
    peers.kind === 'any'
      ? []
      : peers.selectors.flatMap((peer) =>
          peer.kind === 'cidr' ? [peer.prefix, ...peer.except] : [],
        ),
  )
  const ranges = rules.flatMap(({ toPorts }) => (toPorts ?? []).flatMap(({ ports }) => ports))
  return Array.from({ length: count }, () => {
    const peer =
      prefixes.length === 0 || random.oneIn(2)
        ? random.pick(known)
        : edgeOf(random, random.pick(prefixes))
    return { peer, ...portOf(random, ranges, peer.family) }
  })
}

function portOf(
  random: Random,
  ranges: readonly PortRange[],
  family: Family,
): { readonly protocol: number; readonly port: number } {
  // Echo requests, which no port rule covers.
  if (random.oneIn(12)) return { protocol: family === 4 ? 1 : 58, port: 0 }
  if (ranges.length === 0 || random.oneIn(4)) {
    return { protocol: random.pick(PORT_PROTOCOLS), port: randomPort(random) }
  }
  const { protocol, low, high } = random.pick(ranges)
  const port = random.pick([low - 1, low, high, high + 1, low + random.below(high - low + 1)])
  const other = random.oneIn(6) ? random.pick(PORT_PROTOCOLS) : protocol
  return { protocol: other, port: Math.min(LAST_PORT, Math.max(0, port)) }
}

/** The first or last address of a prefix, the one before or after it, or any inside. */
export function edgeOf(random: Random, { family, octets, length }: Prefix): Prefix {
  const width = widthOf(family)
  const address = octets.slice()
  const kind = random.below(5)
  if (kind === 1 || kind === 3) {
    for (let bit = length; bit < width; bit++) setBit(address, bit)
  }
  if (kind === 2) step(address, width, -1)
  if (kind === 3) step(address, width, 1)
  if (kind === 4) {
    for (let bit = length; bit < width; bit++) if (random.oneIn(2)) setBit(address, bit)
  }
  return { family, octets: address, length: width }
}

function setBit(octets: Uint8Array, bit: number): void {
  octets[bit >> 3] = octets[bit >> 3]! | (0x80 >> (bit & 7))
}

/** One address up or down. Wraps around at the ends. */
function step(octets: Uint8Array, width: number, by: 1 | -1): void {
  for (let i = width / 8 - 1; i >= 0; i--) {
    const sum = octets[i]! + by
    octets[i] = sum & 0xff
    if (sum >= 0 && sum <= 255) return
  }
}
