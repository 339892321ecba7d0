// This file finds the nearest rule: the allow rule that would allow what was asked if its ports, its peers, or the endpoints that its
// policy selects were slightly different. Of rules that lack one part, a rule for the same name or address with other ports comes first,
// then a rule for a similar name or address with the same port, then a rule for every address with other ports, then a rule of a policy
// for other endpoints. Among equals, the first wins, and the endpoint's own policies come before other policies. The result is a hint for
// people and decides nothing. The search checks a bounded number of selectors of other policies, so that its time does not grow with the
// number of policies.

import { commonBits, formatAddress, type Prefix } from '../core/ip.ts'
import { formatPort, formatPortRange, formatProtocol, type DnsProtocol } from '../core/protocol.ts'
import { indexLabels, namespaceOf } from '../policy/match/labels.ts'
import { matches, type Pattern } from '../policy/match/pattern.ts'
import type { PeerSelector, Policy, Rule } from '../policy/rule.ts'
import type { RuleOrigin } from '../policy/compile/compile.ts'
import { isAskingOfList } from './allow-lists.ts'
import type { NearestRule, Question } from './explanation.ts'
import { compareName, wordsOf, type Part, type Words } from './name-closeness.ts'
import { explained, rulesOf } from './rules.ts'

/** The parts of a question that are compared with rules. */
export interface Target {
  /** The labels of the endpoint. */
  readonly labels: readonly string[]
  /** Undefined if the question has no name. */
  readonly name: Words | undefined
  /** The name of the address that expired last. Undefined if a name is known or none is remembered. */
  readonly expired: Words | undefined
  readonly address: Prefix | undefined
  /** True if the guard keeps names from opening the address. */
  readonly isGuarded: boolean
  /** True for an address of the node, of a known endpoint or of a resource. */
  readonly isKnown: boolean
  readonly protocol: number
  readonly port: number
  readonly includes: (selector: PeerSelector) => boolean
  readonly textOf: (selector: PeerSelector) => string
}

const FAR: Part = { near: 0, lacks: '' }
const FITS: Part = { near: 1, lacks: '' }
/** A part below this is unrelated to the question. */
const NEAR_MIN = 0.5

/** How many selectors of other policies are checked at most. This takes about a millisecond. */
const OTHERS_MAX = 1000

/** The policies to search. */
export interface Searched {
  /** The policies in force for the endpoint. */
  readonly own: readonly Policy[]
  readonly all: readonly Policy[]
}

/** Finds the nearest rule for a connection that is denied or audited; null if no rule is near. */
export function nearestAllow(searched: Searched, target: Target): NearestRule | null {
  const hasTiers = searched.own.some(({ tier }) => tier !== undefined)
  const namespace = namespaceOf(indexLabels(target.labels))
  let best: { readonly score: number; readonly rule: NearestRule } | undefined
  for (const { origin, isOwn } of candidates(searched)) {
    const { policy, rule } = origin
    const parts = [
      isOwn ? FITS : selection(policy, namespace),
      peersOf(rule, target),
      portsOf(rule, target),
    ]
    if (parts.some(({ near }) => near < NEAR_MIN)) continue
    const score = parts.reduce((sum, { near }) => sum + near, 0)
    if (best !== undefined && score <= best.score) continue
    const lacks = parts.map((part) => part.lacks).filter((text) => text !== '')
    const { policy: name, file, line } = explained(origin)
    const missing =
      lacks.length > 0
        ? lacks.join('; ')
        : hasTiers
          ? 'it allows this, but another rule decides before it'
          : 'it allows this, but a deny rule beats it'
    best = { score, rule: { policy: name, file, line, missing } }
  }
  return best?.rule ?? null
}

interface Candidate {
  readonly origin: RuleOrigin
  readonly isOwn: boolean
}

/** Yields allow rules: first all of the endpoint's policies, then those of other policies up to the bound. */
function* candidates({ own, all }: Searched): Iterable<Candidate> {
  for (const origin of rulesOf(own)) {
    if (isAskingOfList(origin)) continue
    if (origin.rule.action === 'allow') yield { origin, isOwn: true }
  }
  const known = new Set(own)
  let left = OTHERS_MAX
  for (const policy of all) {
    if (known.has(policy)) continue
    for (const rule of policy.rules) {
      const origin = { policy, rule }
      if (rule.action === 'allow' && !isAskingOfList(origin)) yield { origin, isOwn: false }
      left -= 1 + (rule.peers.kind === 'any' ? 0 : rule.peers.selectors.length)
      if (left <= 0) return
    }
  }
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
  const { name, address, expired, isGuarded } = target
  const where = address === undefined ? 'it' : formatAddress(address.family, address.octets)
  if (selector.kind === 'fqdn') {
    if (isGuarded) {
      const isNamed = name !== undefined && matches(selector.pattern, name.wire)
      return isNamed ? { near: 0.9, lacks: `${where} is guarded, so no name opens it` } : FAR
    }
    if (name === undefined) {
      if (expired !== undefined) {
        const lacks = `the answer of ${expired.text} with ${where} has expired`
        return matches(selector.pattern, expired.wire) ? { near: 0.9, lacks } : FAR
      }
      return {
        near: 0.5,
        lacks: `no known answer${forNames(selector.pattern)} had the address ${where}`,
      }
    }
    return compareName(selector.pattern, name)
  }
  if (selector.kind === 'cidr' && address !== undefined) {
    return { near: prefixCloseness(selector.prefix, address), lacks: outside(selector, target) }
  }
  const isNear = selector.kind === 'endpoints' && target.isKnown
  return isNear ? { near: 0.6, lacks: `${target.textOf(selector)} does not select it` } : FAR
}

function forNames({ kind, text }: Pattern): string {
  if (kind === 'every') return ''
  return kind === 'exact' ? ` for ${text}` : ` for a name that ${text} matches`
}

function outside(selector: PeerSelector, { address, textOf }: Target): string {
  const where = address === undefined ? 'it' : formatAddress(address.family, address.octets)
  return `${where} is not in ${textOf(selector)}`
}

/** Compares a prefix with an address, from 0 to 1. An address is near if about half of the prefix bits are equal. */
function prefixCloseness(prefix: Prefix, address: Prefix): number {
  if (prefix.family !== address.family || prefix.length === 0) return 0
  const same = commonBits(prefix.octets, 0, address.octets, 0, prefix.length)
  return same === prefix.length ? 0.8 : same / prefix.length - 0.1
}

function portsOf({ peers, toPorts }: Rule, target: Target): Part {
  const { protocol, port } = target
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
  const lacks = `its ports are ${ports.join(', ') || 'none'}, not ${formatPort(protocol, port)}`
  return { near: isFor(peers, target) ? 0.95 : 0.7, lacks }
}

/** True if a selector that selects only some names or addresses selects the target. */
function isFor(peers: Rule['peers'], { includes }: Target): boolean {
  if (peers.kind === 'any') return false
  return peers.selectors.some((each) => !isForAll(each) && includes(each))
}

function isForAll(selector: PeerSelector): boolean {
  if (selector.kind === 'fqdn') return selector.pattern.kind === 'every'
  return selector.kind === 'entity' || (selector.kind === 'cidr' && selector.prefix.length === 0)
}

/** Finds the nearest rule for a question about a name that is denied or audited. `texts`: the labels of the endpoint. */
export function nearestAsking(
  searched: Searched,
  texts: readonly string[],
  { name: wire, protocol }: Extract<Question, { readonly kind: 'ask' }>,
): NearestRule | null {
  const name = wordsOf(wire)
  const namespace = namespaceOf(indexLabels(texts))
  let best: { readonly score: number; readonly rule: NearestRule } | undefined
  for (const { origin, isOwn } of candidates(searched)) {
    const { policy } = origin
    const whom = isOwn ? FITS : selection(policy, namespace)
    const what =
      policy.kind === 'AllowList' ? lineOf(origin.rule, name) : askingOf(origin, name, protocol)
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

/** Compares the line of an allow-list, which also lets endpoints ask its name. */
function lineOf({ peers }: Rule, name: Words): Part {
  const [selector] = peers.kind === 'any' ? [] : peers.selectors
  if (selector?.kind !== 'fqdn') return FAR
  return compareName(selector.pattern, name)
}

function askingOf({ policy, rule }: RuleOrigin, name: Words, protocol: DnsProtocol): Part {
  const { peers, toPorts } = rule
  let best: Part = { near: 0, lacks: '' }
  const take = (part: Part): void => {
    if (part.near > best.near) best = part
  }
  for (const { dns = [], ports } of toPorts ?? []) {
    const isOver = ports.some((range) => range.protocol === 0 || range.protocol === protocol)
    const among = `${ports.map(formatPortRange).join(', ')}, not ${formatProtocol(protocol)}`
    const other = isOver ? '' : `its rules.dns is for ${among}`
    for (const pattern of dns) {
      const isMatch = matches(pattern, name.wire)
      if (isMatch) take({ near: isOver ? 1 : 0.95, lacks: other })
      else take(compareName(pattern, name, `its rules.dns has ${pattern.text}, which`))
    }
  }
  for (const peer of peers.kind === 'any' ? [] : peers.selectors) {
    if (peer.kind !== 'fqdn' || !matches(peer.pattern, name.wire)) continue
    if (policy.tier !== undefined) take(FITS)
    take({ near: 0.95, lacks: 'toFQDNs permits no asking: a rule with rules.dns has to match too' })
  }
  return best
}
