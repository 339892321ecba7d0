// The rule that would have allowed it if one thing were otherwise: its ports, its peers, or whom its policy selects.
// Of several the one that lacks least, and of equals the first in the order of the policies. Words for people; nothing
// is decided here.

import { formatName } from '../../core/name.ts'
import { nearest } from '../../core/nearest.ts'
import { commonBits, formatAddress, type Prefix } from '../../core/ip.ts'
import { formatPortRange, formatProtocol } from '../../core/protocol.ts'
import { indexLabels, namespaceOf, policySelects } from '../../policy/labels.ts'
import { matches, type Pattern } from '../../policy/pattern.ts'
import type { PeerSelector, Policy, PortRule, Rule } from '../../policy/rule.ts'
import type { RuleOrigin } from '../../policy/compile.ts'
import type { NearestRule } from './explanation.ts'
import { explained } from './rules.ts'

/** What was asked, as far as rules can be near to it. */
export interface Target {
  readonly labels: readonly string[]
  /** Wire form; undefined when no name is asked about. */
  readonly name: Uint8Array | undefined
  readonly address: Prefix | undefined
  /** Whether the address is a known endpoint's or resource's. */
  readonly isKnown: boolean
  readonly protocol: number
  readonly port: number
  readonly includes: (selector: PeerSelector) => boolean
  readonly textOf: (selector: PeerSelector) => string
}

/** How near one part is, 1 being what is wanted, and what to say when it is less. */
interface Part {
  readonly near: number
  readonly lacks: string
}

const FAR: Part = { near: 0, lacks: '' }
const FITS: Part = { near: 1, lacks: '' }
/** Below this a peer has nothing to do with the question. */
const NEAR_MIN = 0.5

export function nearestAllow(rules: readonly RuleOrigin[], target: Target): NearestRule | null {
  const labels = indexLabels(target.labels)
  let best: { readonly score: number; readonly rule: NearestRule } | undefined
  for (const origin of rules) {
    const { policy, rule } = origin
    if (rule.action !== 'allow') continue
    const parts = [
      policySelects(policy, labels) ? FITS : selection(policy, namespaceOf(labels)),
      peersOf(rule, target),
      portsOf(rule.toPorts, target),
    ]
    if (parts.some(({ near }) => near < NEAR_MIN)) continue
    const score = parts.reduce((sum, { near }) => sum + near, 0)
    if (best !== undefined && score <= best.score) continue
    const lacks = parts.map((part) => part.lacks).filter((text) => text !== '')
    const { policy: name, file, line } = explained(origin)
    const missing =
      lacks.length === 0 ? 'it allows this, but a deny rule beats it' : lacks.join('; ')
    best = { score, rule: { policy: name, file, line, missing } }
  }
  return best?.rule ?? null
}

function selection({ namespace, selector }: Policy, own: string): Part {
  const wanted = [...selector.matchLabels].map(([key, value]) => `${key}=${value}`).join(', ')
  if (namespace !== undefined && namespace !== own) {
    return { near: 0.5, lacks: `its policy selects in namespace ${namespace}, not in ${own}` }
  }
  return { near: 0.6, lacks: `its policy does not select this endpoint, but ${wanted || 'others'}` }
}

function peersOf({ peers, toPorts }: Rule, target: Target): Part {
  if (peers.kind === 'any') return toPorts === undefined ? { near: 0, lacks: '' } : FITS
  let best: Part = { near: 0, lacks: '' }
  for (const selector of peers.selectors) {
    const part = target.includes(selector) ? FITS : closeness(selector, target)
    if (part.near > best.near) best = part
  }
  return best
}

function closeness(selector: PeerSelector, target: Target): Part {
  const { name, address } = target
  if (selector.kind === 'fqdn') {
    const { text } = selector.pattern
    if (name === undefined) {
      const where = address === undefined ? 'it' : formatAddress(address.family, address.octets)
      return { near: 0.5, lacks: `no name that ${text} matches is known to have led to ${where}` }
    }
    const lacks = `${text} does not match ${formatName(name)}`
    return { near: patternCloseness(selector.pattern, name), lacks }
  }
  if (selector.kind === 'cidr' && address !== undefined) {
    return { near: prefixCloseness(selector.prefix, address), lacks: outside(selector, target) }
  }
  const isNear = selector.kind === 'endpoints' && target.isKnown
  return isNear ? { near: 0.6, lacks: `${target.textOf(selector)} does not select it` } : FAR
}

function outside(selector: PeerSelector, { address, textOf }: Target): string {
  const where = address === undefined ? 'it' : formatAddress(address.family, address.octets)
  return `${where} is not in ${textOf(selector)}`
}

/** 1 would be the same; names with the same parent are near, and misspelt ones. */
export function patternCloseness({ text, labels }: Pattern, wire: Uint8Array): number {
  const name = formatName(wire)
  const [own, other] = [[...labels].reverse(), name.split('.').reverse()]
  if (own.length === other.length && nearest(name, [text]) !== undefined) return 0.9
  let same = 0
  while (same < own.length && same < other.length && own[same] === other[same]) same++
  if (same < 2) return 0
  const star = own[same]?.includes('*') === true ? 0.5 : 0
  return 0.5 + (0.4 * (same + star)) / Math.max(own.length, other.length)
}

/** Near when as much as half of a prefix is the address's too. */
function prefixCloseness(prefix: Prefix, address: Prefix): number {
  if (prefix.family !== address.family || prefix.length === 0) return 0
  const same = commonBits(prefix.octets, 0, address.octets, 0, prefix.length)
  return same === prefix.length ? 0.8 : same / prefix.length - 0.1
}

function portsOf(toPorts: readonly PortRule[] | undefined, { protocol, port }: Target): Part {
  if (toPorts === undefined) return FITS
  const covering = toPorts.filter(({ ports }) =>
    ports.some((range) => {
      const isProtocol = range.protocol === 0 || range.protocol === protocol
      return isProtocol && range.low <= port && port <= range.high
    }),
  )
  if (covering.some(({ dns }) => dns === undefined)) return FITS
  if (covering.length > 0) {
    return { near: 0.55, lacks: 'its ports have rules.dns: they permit asking and open nothing' }
  }
  const opening = toPorts.filter(({ dns }) => dns === undefined)
  if (opening.length === 0) return { near: 0, lacks: '' }
  const ports = [...new Set(opening.flatMap((each) => each.ports).map(formatPortRange))]
  const lacks = `its ports are ${ports.join(', ') || 'none'}, not ${port}/${formatProtocol(protocol)}`
  return { near: 0.7, lacks }
}

/** The same of a name that may not be asked. */
export function nearestAsking(
  rules: readonly RuleOrigin[],
  texts: readonly string[],
  name: Uint8Array,
): NearestRule | null {
  const labels = indexLabels(texts)
  let best: { readonly score: number; readonly rule: NearestRule } | undefined
  for (const origin of rules) {
    const { policy, rule } = origin
    if (rule.action !== 'allow') continue
    const whom = policySelects(policy, labels) ? FITS : selection(policy, namespaceOf(labels))
    const what = askingOf(rule, name)
    if (what.near < NEAR_MIN) continue
    const score = whom.near + what.near
    if (best !== undefined && score <= best.score) continue
    const lacks = [whom.lacks, what.lacks].filter((text) => text !== '')
    const { policy: by, file, line } = explained(origin)
    const missing = lacks.join('; ') || 'it permits this, but a deny rule beats it'
    best = { score, rule: { policy: by, file, line, missing } }
  }
  return best?.rule ?? null
}

function askingOf({ peers, toPorts }: Rule, name: Uint8Array): Part {
  let best: Part = { near: 0, lacks: '' }
  const take = (part: Part): void => {
    if (part.near > best.near) best = part
  }
  for (const pattern of (toPorts ?? []).flatMap(({ dns }) => dns ?? [])) {
    const near = matches(pattern, name) ? 1 : patternCloseness(pattern, name)
    const lacks = near === 1 ? '' : `its rules.dns has ${pattern.text}, which does not match`
    take({ near, lacks })
  }
  for (const peer of peers.kind === 'any' ? [] : peers.selectors) {
    if (peer.kind !== 'fqdn' || !matches(peer.pattern, name)) continue
    take({ near: 0.95, lacks: 'toFQDNs permits no asking: a rule with rules.dns has to match too' })
  }
  return best
}
