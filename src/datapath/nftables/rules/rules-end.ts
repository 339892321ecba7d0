// This file makes the chains in which packets end. Each chain counts the packet, accepts or drops it, and reports a packet that
// is dropped or would be dropped.

import type { Family } from '../../../core/ip.ts'
import type { PolicyVerdict } from '../../entries.ts'
import { outcomeOf } from '../../verdict.ts'
import {
  compare,
  contains,
  count,
  ct,
  CT,
  CT_STATE_NEW,
  EQUAL,
  goTo,
  immediate,
  jump,
  limit,
  log,
  mask,
  META,
  meta,
  NOT_EQUAL,
  payload,
  reject,
  remember,
  TRANSPORT_HEADER,
  verdict,
  word,
  type Expression,
} from '../netlink/expressions.ts'
import { LOG_AUDIT, LOG_DENY, LOG_GROUP, LOG_OCTETS, MODE_NUMBER, type Side } from './layout.ts'
import { sidesOf, type RuleForm } from './form.ts'
import { address, endpoint, TCP, words, type Rule } from './rule.ts'

/** Most reports of each kind per second. */
const REPORTS = 1000

export function endRules(form: RuleForm): readonly Rule[] {
  const { reports, rejects } = form
  const dropped = (chain: string, reason: string, counter: string): readonly Rule[] => [
    ...reported(chain, `${LOG_DENY}${reason}`, reports),
    { chain, expressions: [count(counter), verdict('drop')] },
  ]
  return [
    ...dropped('malformed', 'malformed', 'drop_malformed'),
    ...dropped('foreign', 'source', 'drop_source'),
    ...(rejects ? rejectedRules(reports) : dropped('refused', 'policy', 'drop_policy')),
    { chain: 'allowed', expressions: [count('verdict_allow'), verdict('accept')] },
    ...reported('audit', `${LOG_AUDIT}policy`, reports),
    { chain: 'audit', expressions: [count('verdict_audit'), verdict('accept')] },
    ...sidesOf(form).flatMap((side) => [
      ...lenientRules(side),
      ...([4, 6] as const).flatMap((family) => olderRules(side, family)),
    ]),
  ]
}

/** Returns the chain to which three verdicts (identity, class, any) lead. */
export function endOf(
  verdicts: readonly (PolicyVerdict | 'none')[],
  side: Side,
  family: Family,
): string {
  switch (outcomeOf(verdicts).verdict) {
    case 'deny':
      return `${side}_denied${family}`
    case 'allow':
      return 'allowed'
    case 'audit':
      return 'audit'
    case 'none':
      return `${side}_unnamed${family}`
  }
}

function reported(chain: string, prefix: string, reports: boolean): readonly Rule[] {
  if (!reports) return []
  return [{ chain, expressions: [limit(REPORTS, REPORTS), log(LOG_GROUP, prefix, LOG_OCTETS)] }]
}

/** As `dropped` for policy, but the sender gets an answer, so a program does not wait for its own timeout. */
function rejectedRules(reports: boolean): readonly Rule[] {
  const chain = 'refused'
  const counter = count('drop_policy')
  return [
    ...reported(chain, `${LOG_DENY}policy`, reports),
    {
      chain,
      expressions: [
        meta(META.l4proto, 0),
        compare(0, EQUAL, Uint8Array.of(TCP)),
        counter,
        reject('tcp-reset'),
      ],
    },
    { chain, expressions: [counter, reject('prohibited')] },
  ]
}

/** Step 8: the mode, and the flags of the endpoint. */
function lenientRules(side: Side): readonly Rule[] {
  const chain = `${side}_refuse`
  return [
    {
      chain,
      expressions: [immediate(word(MODE_NUMBER.audit), 0), contains('mode', 0), goTo('audit')],
    },
    { chain, expressions: [...endpoint(side, 0), contains('audited', 0), goTo('audit')] },
    {
      chain,
      expressions: [
        ...endpoint(side, 0),
        contains('unenforced', 0),
        count('verdict_not_enforcing'),
        verdict('accept'),
      ],
    },
    { chain, expressions: [goTo('refused')] },
  ]
}

/** Step 7: connections that are older than enforcement. A packet with SYN never belongs to one. */
function olderRules(side: Side, family: Family): readonly Rule[] {
  const [denied, unnamed] = [`${side}_denied${family}`, `${side}_unnamed${family}`]
  const listed = `${side}_older${family}`
  const learned = `${side}_learned${family}`
  const adopted = [count('verdict_adopted'), verdict('accept')]
  const isLearning = (set: string): readonly Expression[] => [
    ...endpoint(side, 0),
    contains(set, 0),
  ]
  const tcp = [meta(META.l4proto, 0), compare(0, EQUAL, Uint8Array.of(TCP))]
  const icmp = family === 4 ? 1 : 58
  const hasSyn = [
    ...tcp,
    payload(TRANSPORT_HEADER, 13, 1, 0),
    mask(0, 0, Uint8Array.of(0x02)),
    compare(0, NOT_EQUAL, Uint8Array.of(0)),
    verdict('return'),
  ]
  return [
    { chain: denied, expressions: [jump(listed)] },
    { chain: denied, expressions: [goTo(`${side}_refuse`)] },
    { chain: unnamed, expressions: [jump(listed)] },
    { chain: unnamed, expressions: [jump(learned)] },
    { chain: unnamed, expressions: [goTo(`${side}_refuse`)] },
    { chain: listed, expressions: hasSyn },
    ...[TCP, 17, 132, icmp].map((protocol) => ({
      chain: listed,
      expressions: [...flow(side, family, protocol), contains(`adopted${family}`, 0), ...adopted],
    })),
    { chain: learned, expressions: hasSyn },
    {
      chain: learned,
      expressions: [
        ...isLearning('passing'),
        ...flow(side, family, TCP),
        contains(`learned${family}`, 0),
        ...adopted,
      ],
    },
    {
      chain: learned,
      expressions: [
        ...isLearning('learning'),
        ...isUnseen,
        ...flow(side, family, TCP),
        remember(`learned${family}`, 0),
        ...adopted,
      ],
    },
  ]
}

/**
 * Loads the connection of a packet from register 0 on, in the form of the keys of `adopted`. For ICMP it loads the identifier
 * twice.
 */
function flow(side: Side, family: Family, protocol: number): readonly Expression[] {
  const hasPorts = protocol === TCP || protocol === 17 || protocol === 132
  const n = words(family)
  const [from, to] = hasPorts ? [0, 2] : [4, 4]
  return [
    meta(META.l4proto, 1),
    compare(1, EQUAL, Uint8Array.of(protocol)),
    ...endpoint(side, 0),
    address(family, 'source', 2),
    payload(TRANSPORT_HEADER, from, 2, 2 + n),
    address(family, 'target', 3 + n),
    payload(TRANSPORT_HEADER, to, 2, 3 + 2 * n),
  ]
}

/**
 * True if conntrack regards the connection as new. For a connection whose beginning it did not see, conntrack does so at a
 * segment from the middle.
 */
const isUnseen: readonly Expression[] = [
  ct(CT.state, 0),
  mask(0, 0, word(CT_STATE_NEW)),
  compare(0, NOT_EQUAL, word(0)),
]
