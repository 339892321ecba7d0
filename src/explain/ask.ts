// `decideAsking` explains if an endpoint can ask a name. The verdict comes from DnsVerdicts, as for a real query. This file finds the rules
// and patterns behind the verdict, with the same functions that compile the rules.

import { formatName } from '../core/name.ts'
import { formatProtocol, TCP, UDP, type DnsProtocol } from '../core/protocol.ts'
import { ENDPOINT_CLASS, RESOURCE_CLASS } from '../identity/reserved.ts'
import type { RuleOrigin } from '../policy/compile/compile.ts'
import {
  deniesAsking,
  entriesOf,
  mayBeServer,
  patternsOf,
  permitsEveryName,
} from '../policy/compile/dns-rules.ts'
import { domainNamesOf } from '../policy/compile/dns-tiers.ts'
import { matches, type Pattern } from '../policy/match/pattern.ts'
import type { PortRule, Rule } from '../policy/rule.ts'
import type { CoreState } from '../enforcement/core-state.ts'
import { AUDITED, MAY_ASK, SERVER_DENIED, type DnsVerdicts } from '../enforcement/dns-verdicts.ts'
import type { SharedRules } from '../enforcement/shared-rules.ts'
import type { Asker, Question } from './explanation.ts'
import { wordForRule } from './allow-lists.ts'
import { keyOf, type Peer } from './peer.ts'
import { explained, includes, rulesOf } from './rules.ts'

/** The verdict on a question about a name, with the rules and patterns behind it. */
export interface AskDecision {
  /** `audit`: only audited policies deny the question, so it passes. */
  readonly verdict: 'allow' | 'audit' | 'name-denied' | 'server-denied'
  /** The rules that permit an allowed question; else the rules that deny it, or the audited rules that would deny it. */
  readonly rules: readonly RuleOrigin[]
  /** The texts of the patterns that permit the name. */
  readonly patterns: readonly string[]
  /** True if any rule of the endpoint has `rules.dns`. */
  readonly hasDns: boolean
}

type Ask = Extract<Question, { readonly kind: 'ask' }>

/** A question, the endpoint that asks it, and the state that decides it. */
export interface Asking {
  readonly core: CoreState
  readonly verdicts: DnsVerdicts
  readonly shared: SharedRules
  readonly asker: Asker
  readonly question: Ask
  /** The server that the question names; undefined for the configured servers. */
  readonly peer: Peer | undefined
}

/** Decides a question about a name, and finds the rules and patterns behind the verdict. */
export function decideAsking(asking: Asking): AskDecision {
  const { core, shared, question, peer } = asking
  const { name, protocol, server } = question
  const rules = rulesOf(shared.compiled.policies)
  const serverEntries = (rule: Rule): readonly PortRule[] =>
    server === undefined || peer === undefined
      ? poolEntries(rule, protocol)
      : entriesOf(rule, {
          withoutRules: 'allow',
          egress: shared.compiled.egress,
          port: server.port,
          protocol,
          isKnown: peer.addressClass === ENDPOINT_CLASS || peer.addressClass === RESOURCE_CLASS,
          includes: (selector) => includes(core, peer, selector),
        })
  const entries = ({ policy, rule }: RuleOrigin): readonly PortRule[] => {
    const names = policy.tier === undefined ? [] : domainNamesOf(rule)
    return names.length === 0 ? serverEntries(rule) : [{ ports: [], dns: names }]
  }
  const denying = rules.filter(
    ({ rule }) =>
      rule.action === 'deny' &&
      (server === undefined ? deniesAsking(rule, protocol) : serverEntries(rule).length > 0),
  )
  const permitting = rules.filter(
    (each) => each.rule.action === 'allow' && entries(each).some((entry) => permits(entry, name)),
  )
  const verdict = verdictOver(asking, protocol)
  const isAudited = verdict === 'audit'
  const patterns = permitting.flatMap((each) =>
    entries(each).flatMap(({ dns }) => (dns ?? []).filter((pattern) => matches(pattern, name))),
  )
  return {
    verdict,
    rules:
      verdict === 'allow'
        ? permitting
        : denying.filter(({ policy: { audited = false } }) => audited === isAudited),
    patterns: patterns.map(({ text }) => text),
    hasDns: rules.some(({ rule }) => rule.toPorts?.some(({ dns }) => dns !== undefined)),
  }
}

/** Returns a note if the verdict over the other protocol differs; else an empty list. */
export function otherProtocolNote(asking: Asking): readonly string[] {
  const { question } = asking
  const protocol = question.protocol === UDP ? TCP : UDP
  const other = verdictOver(asking, protocol)
  if (other === verdictOver(asking, question.protocol)) return []
  const words = { allow: 'allow', audit: 'audit', 'name-denied': 'deny', 'server-denied': 'deny' }
  return [`over ${formatProtocol(protocol)} the verdict is ${words[other]}`]
}

function verdictOver(
  { verdicts, asker: { id }, question: { name, server }, peer }: Asking,
  protocol: DnsProtocol,
): AskDecision['verdict'] {
  if (server === undefined || peer === undefined) {
    return verdictOf(verdicts.judge(id, protocol, name, 0))
  }
  const { addressClass } = peer
  const at = { identity: keyOf(peer), addressClass, port: server.port, protocol }
  return verdictOf(verdicts.judgeAt(id, at, name, 0))
}

function verdictOf(judged: number): AskDecision['verdict'] {
  if (judged === MAY_ASK) return 'allow'
  if (judged === AUDITED) return 'audit'
  return judged === SERVER_DENIED ? 'server-denied' : 'name-denied'
}

/** Returns the port entries of a rule that apply to the configured servers. */
function poolEntries(rule: Rule, protocol: DnsProtocol): readonly PortRule[] {
  if (permitsEveryName(rule, protocol)) return [{ ports: [], dns: undefined }]
  if (!mayBeServer(rule.peers)) return []
  return (rule.toPorts ?? []).flatMap((entry) => {
    const dns: readonly Pattern[] = patternsOf(entry, protocol)
    return dns.length === 0 ? [] : [{ ports: entry.ports, dns }]
  })
}

function permits({ dns }: PortRule, name: Uint8Array): boolean {
  return dns === undefined || dns.some((pattern) => matches(pattern, name))
}

/** Returns a note with the remedy if a rule names the name under toFQDNs, for a name that no rule lets the endpoint ask. */
export function unaskedNote({ compiled }: SharedRules, name: Uint8Array): readonly string[] {
  const naming = rulesOf(compiled.policies).find(
    ({ rule: { action, peers } }) =>
      action === 'allow' &&
      peers.kind !== 'any' &&
      peers.selectors.some((each) => each.kind === 'fqdn' && matches(each.pattern, name)),
  )
  if (naming === undefined) return []
  const text = formatName(name)
  const { policy, file, line } = explained(naming)
  return [
    `${policy} ${file}:${line} has ${text} under toFQDNs, but no rule lets it be asked: add a rule with toPorts 53, protocol ANY, and ${text} under rules.dns`,
  ]
}

/** Returns the reason of a decision, as a sentence without a full stop. */
export function reasonOfAsking(
  { verdict, rules, hasDns }: AskDecision,
  { compiled }: SharedRules,
  { name, protocol }: Ask,
): string {
  const text = formatName(name)
  const word = wordForRule(compiled.policies)
  if (verdict === 'allow') {
    if (rules.length > 0) return `${text} may be asked: a ${word} permits it`
    if (!hasDns) return `${text} may be asked: no rule has rules.dns (dns.without-rules: allow)`
    return `${text} may be asked: no policy turns default deny on (default-egress: ${compiled.egress})`
  }
  if (verdict === 'audit') {
    return rules.length > 0
      ? `${text} may be asked, but an audited policy has a rule that denies it`
      : `${text} may be asked, but no ${word} permits it and an audited policy would deny it`
  }
  if (verdict === 'server-denied') {
    return rules.length > 0
      ? `${text} may not be asked: a rule denies the server`
      : `${text} may not be asked: no rule admits the server at that port over ${formatProtocol(protocol)}`
  }
  if (rules.length > 0) return `${text} may not be asked: a rule denies asking`
  if (word !== 'rule') return `${text} may not be asked: no ${word} allows it`
  if (!hasDns) return `${text} may not be asked: no rule permits it (dns.without-rules: deny)`
  return `${text} may not be asked: no rules.dns for ${formatProtocol(protocol)} matches it`
}
