// May an endpoint ask a name. DnsVerdicts gives the verdict, as for a real query. This file finds the rules and patterns behind it, with
// the functions that compile the verdict's patterns.

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
import { matches, type Pattern } from '../policy/match/pattern.ts'
import type { PortRule } from '../policy/rule.ts'
import type { CoreState } from '../enforcement/core-state.ts'
import { AUDITED, MAY_ASK, SERVER_DENIED, type DnsVerdicts } from '../enforcement/dns-verdicts.ts'
import type { SharedRules } from '../enforcement/shared-rules.ts'
import type { Asker, Question } from './explanation.ts'
import { keyOf, type Peer } from './peer.ts'
import { includes, rulesOf } from './rules.ts'

export interface AskDecision {
  /** `audit`: only audited policies deny it. */
  readonly verdict: 'allow' | 'audit' | 'name-denied' | 'server-denied'
  readonly rules: readonly RuleOrigin[]
  /** Texts of the patterns that match the name. */
  readonly patterns: readonly string[]
  /** Whether any rule of the endpoint has `rules.dns`. */
  readonly hasDns: boolean
}

type Ask = Extract<Question, { readonly kind: 'ask' }>

export function decideAsking(
  core: CoreState,
  verdicts: DnsVerdicts,
  asker: Asker,
  shared: SharedRules,
  question: Ask,
  peer: Peer | undefined,
): AskDecision {
  const { name, protocol, server } = question
  const rules = rulesOf(shared.compiled.policies)
  const entries = (rule: RuleOrigin['rule']): readonly PortRule[] =>
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
  const denying = rules.filter(
    ({ rule }) =>
      rule.action === 'deny' &&
      (server === undefined ? deniesAsking(rule, protocol) : entries(rule).length > 0),
  )
  const permitting = rules.filter(
    ({ rule }) => rule.action === 'allow' && entries(rule).some((entry) => permits(entry, name)),
  )
  const verdict = verdictOver(verdicts, asker, question, peer)
  const isAudited = verdict === 'audit'
  const patterns = permitting.flatMap(({ rule }) =>
    entries(rule).flatMap(({ dns }) => (dns ?? []).filter((each) => matches(each, name))),
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

/** A note when the verdict over the other protocol differs. */
export function otherProtocolNote(
  verdicts: DnsVerdicts,
  asker: Asker,
  question: Ask,
  peer: Peer | undefined,
): readonly string[] {
  const protocol = question.protocol === UDP ? TCP : UDP
  const other = verdictOver(verdicts, asker, { ...question, protocol }, peer)
  if (other === verdictOver(verdicts, asker, question, peer)) return []
  const words = { allow: 'allow', audit: 'audit', 'name-denied': 'deny', 'server-denied': 'deny' }
  return [`over ${formatProtocol(protocol)} the verdict is ${words[other]}`]
}

function verdictOver(
  verdicts: DnsVerdicts,
  { id }: Asker,
  { name, protocol, server }: Ask,
  peer: Peer | undefined,
): AskDecision['verdict'] {
  if (server === undefined || peer === undefined) {
    return verdictOf(verdicts.judge(id, protocol, name, 0))
  }
  const at = { identity: keyOf(peer), addressClass: peer.addressClass }
  return verdictOf(verdicts.judgeAt(id, at, server.port, protocol, name, 0))
}

function verdictOf(judged: number): AskDecision['verdict'] {
  if (judged === MAY_ASK) return 'allow'
  if (judged === AUDITED) return 'audit'
  return judged === SERVER_DENIED ? 'server-denied' : 'name-denied'
}

/** The part of a rule about the configured servers. */
function poolEntries(rule: RuleOrigin['rule'], protocol: DnsProtocol): readonly PortRule[] {
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

/** The reason of a decision as a sentence without full stop. */
export function reasonOfAsking(
  { verdict, rules, hasDns }: AskDecision,
  { compiled }: SharedRules,
  { name, protocol }: Ask,
): string {
  const text = formatName(name)
  if (verdict === 'allow') {
    if (rules.length > 0) return `${text} may be asked: a rule permits it`
    if (!hasDns) return `${text} may be asked: no rule has rules.dns (dns.without-rules: allow)`
    return `${text} may be asked: no policy turns default deny on (default-egress: ${compiled.egress})`
  }
  if (verdict === 'audit') {
    return rules.length > 0
      ? `${text} may be asked, but an audited policy has a rule that denies it`
      : `${text} may be asked, but no rule permits it and an audited policy would deny it`
  }
  if (verdict === 'server-denied') {
    return rules.length > 0
      ? 'the server may not be asked: a rule denies it'
      : `the server may not be asked: no rule admits it at that port over ${formatProtocol(protocol)}`
  }
  if (rules.length > 0) return `${text} may not be asked: a rule denies asking`
  if (!hasDns) return `${text} may not be asked: no rule permits it (dns.without-rules: deny)`
  return `${text} may not be asked: no rules.dns for ${formatProtocol(protocol)} matches it`
}
