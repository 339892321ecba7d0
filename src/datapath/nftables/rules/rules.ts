// This file makes the static rules: the verdict of src/datapath/datapath.ts, as chains of `inet namegate`. Each side has one
// entry chain for packets that endpoints send, and one for packets that endpoints receive. Conntrack has seen a packet before
// these chains; DNAT and TPROXY have not. Registers keep nothing from one rule to the next, so every rule finds the packet's
// endpoint by itself.
//
// A destination is looked up in at most four places, in this order: the endpoint's own scope (exact, then ranges), then the
// node's scope (exact, then ranges). The first place that has it decides. If no place has it, it belongs to the world. Then the
// rule looks up (identity, endpoint) -> port set, and (port set, protocol, port) -> verdict. It does so three times, and the
// three verdicts together decide where the packet goes.

import {
  compare,
  contains,
  count,
  ct,
  CT,
  EQUAL,
  goTo,
  immediate,
  lacks,
  LESS,
  mask,
  META,
  meta,
  NETWORK_HEADER,
  NOT_EQUAL,
  payload,
  TRANSPORT_HEADER,
  verdict,
  word,
  type Expression,
} from '../netlink/expressions.ts'
import type { Family } from '../../../core/ip.ts'
import { ENDPOINT_CLASS, HOST } from '../../../identity/reserved.ts'
import { MODE_NUMBER, type Side } from './layout.ts'
import {
  address,
  endpoint,
  LABEL,
  NFPROTO,
  TCP,
  hasEndpoint,
  words,
  type Chain,
  type Rule,
} from './rule.ts'
import { ALL_FORMS, sidesOf, type RuleForm } from './form.ts'
import { formRules } from './rules-form.ts'
import { endRules } from './rules-end.ts'
import { identify, judgeRules } from './rules-judge.ts'
import { linkRules, learnRules } from './rules-link.ts'
import { markJudged, sendingRules, UNJUDGED } from './rules-sending.ts'

const PREROUTING = 0
const LOCAL_OUT = 3
const POSTROUTING = 4
/** After conntrack (-200), and before mangle (-150), where TPROXY runs, and before DNAT. */
const PRIORITY = -160
const DNS_PORT = Uint8Array.of(0, 53)
/** The first address of the groups. A multicast router may forward a packet to a group. */
const FIRST_GROUP = { 4: group(4, 224), 6: group(16, 255) } as const
/** After DNAT (-100), so that a redirected query has its new destination. */
const SENDING_PRIORITY = -90

/** The entry chains of a form, with their hooks. */
export function entryChains({ rejects }: RuleForm): readonly Chain[] {
  const received = { name: 'out_to', hook: { number: PREROUTING, priority: PRIORITY } }
  if (rejects) {
    return [
      received,
      { name: 'out_from', hook: { number: LOCAL_OUT, priority: SENDING_PRIORITY } },
      { name: UNJUDGED, hook: { number: POSTROUTING, priority: PRIORITY } },
    ]
  }
  return [
    { name: 'in_from', hook: { number: PREROUTING, priority: PRIORITY } },
    { name: 'in_to', hook: { number: POSTROUTING, priority: PRIORITY } },
    { name: 'out_from', hook: { number: POSTROUTING, priority: PRIORITY } },
    received,
  ]
}

/** All rules of the table, in order within each chain. */
export function makeRules(form: RuleForm): readonly Rule[] {
  return sidesOf(form)
    .flatMap((side) => [
      ...(side === 'out' && form.rejects ? sendingRules() : []),
      ...entryRules(side, form),
      ...([4, 6] as const).flatMap((family) => familyRules(side, family)),
      ...learnRules(side),
    ])
    .concat(endRules(form))
}

/** The chains that rules or verdicts lead to, without the entry chains. */
export function chainsOf(rules: readonly Rule[]): readonly string[] {
  const entries = new Set(ALL_FORMS.flatMap(entryChains).map(({ name }) => name))
  return [...new Set(rules.map(({ chain }) => chain))].filter((name) => !entries.has(name))
}

function entryRules(side: Side, { rejects }: RuleForm): readonly Rule[] {
  const [index, name] = side === 'in' ? [META.iif, META.iifname] : [META.oif, META.oifname]
  const bypass = [immediate(word(MODE_NUMBER.bypass), 0), contains('mode', 0)]
  const families = (chain: string): readonly Rule[] =>
    ([4, 6] as const).map((family) => ({
      chain,
      expressions: [
        meta(META.nfproto, 0),
        compare(0, EQUAL, Uint8Array.of(NFPROTO[family])),
        goTo(`${chain}${family}`),
      ],
    }))
  const [sender, fenced] = [`${side}_sender`, `${side}_fenced`]
  const judged = side === 'out' && rejects ? markJudged : []
  return [
    {
      chain: `${side}_from`,
      expressions: [meta(index, 0), hasEndpoint(side, 0), ...judged, goTo(sender)],
    },
    {
      chain: `${side}_from`,
      expressions: [meta(name, 0), contains(`fences_${side}`, 0), ...judged, goTo(fenced)],
    },
    { chain: sender, expressions: [...bypass, count('verdict_bypass'), verdict('accept')] },
    ...families(sender),
    { chain: fenced, expressions: [...bypass, count('verdict_bypass'), verdict('accept')] },
    ...families(fenced),
  ]
}

function familyRules(side: Side, family: Family): readonly Rule[] {
  const sender = `${side}_sender${family}`
  const fenced = `${side}_fenced${family}`
  const isForeign = [
    ...endpoint(side, 0),
    address(family, 'source', 1),
    lacks(`sources${family}`, 0),
  ]
  return [
    ...formRules(family, sender),
    ...linkRules(side, family, sender, true),
    { chain: sender, expressions: [...isForeign, goTo('foreign')] },
    ...ownRules(side, family, sender),
    { chain: sender, expressions: [goTo(`${side}_kinds${family}`)] },
    ...kindRules(side, family),
    ...formRules(family, fenced),
    ...linkRules(side, family, fenced, false),
    ...(side === 'in' ? strangerRules(side, family, fenced) : ownRules(side, family, fenced)),
    ...exceptionRules(side, family, fenced),
    { chain: fenced, expressions: [count('drop_no_endpoint'), verdict('drop')] },
    ...judgeRules(side, family, true),
    ...judgeRules(side, family, false),
  ]
}

/** The addresses of a fenced interface are unknown. So only a source address of the host or of another endpoint is refused. */
function strangerRules(side: Side, family: Family, chain: string): readonly Rule[] {
  return (['exact', 'ranges'] as const).flatMap((map) =>
    [HOST, ENDPOINT_CLASS].map((addressClass) => ({
      chain,
      expressions: [
        ...identify(family, map, false, side, 'source'),
        compare(7, EQUAL, word(addressClass)),
        goTo('foreign'),
      ],
    })),
  )
}

/** Admits namegate's own queries, where namegate shares the network namespace with the workload that it fences. */
function ownRules(side: Side, family: Family, chain: string): readonly Rule[] {
  if (side === 'in') return []
  const port = 3 + words(family)
  return [
    {
      chain,
      expressions: [
        meta(META.mark, 0),
        meta(10, 1),
        meta(META.l4proto, 2),
        address(family, 'target', 3),
        payload(TRANSPORT_HEADER, 2, 2, port),
        contains(`own${family}`, 0),
        count('verdict_own'),
        verdict('accept'),
      ],
    },
  ]
}

/** Steps 3 and 4: admits packets to namegate's own listeners, and DNS on intercepted interfaces, which other rules redirect. */
function exceptionRules(side: Side, family: Family, chain: string): readonly Rule[] {
  const port = 1 + words(family)
  const listener = [count('verdict_listener'), verdict('accept')]
  const bare = isBare(family)
  const place = [meta(META.iif, 0), meta(META.nfproto, 1), bareProtocol(family, 2)]
  const intercepted = [count('verdict_intercepted'), verdict('accept')]
  const isDns = [
    ...bare,
    address(family, 'target', 0),
    compare(0, LESS, FIRST_GROUP[family]),
    payload(TRANSPORT_HEADER, 2, 2, 0),
    compare(0, EQUAL, DNS_PORT),
  ]
  const rules = [
    [
      ...bare,
      bareProtocol(family, 0),
      address(family, 'target', 1),
      payload(TRANSPORT_HEADER, 2, 2, port),
      contains(`listeners${family}`, 0),
      ...listener,
    ],
    ...(['exact', 'ranges'] as const).map((map) => [
      ...bare,
      ...identify(family, map, false, side),
      compare(7, EQUAL, word(HOST)),
      meta(META.nfproto, 8),
      bareProtocol(family, 9),
      payload(TRANSPORT_HEADER, 2, 2, 10),
      contains('listeners_any', 8),
      ...listener,
    ]),
    ...(side === 'out'
      ? []
      : [
          [...isDns, ...place, contains('intercepted', 0), ...intercepted],
          [...isDns, ...place, payload(0, 0, 6, 3), contains('intercepted_mac', 0), ...intercepted],
        ]),
  ]
  return rules.map((expressions) => ({ chain, expressions }))
}

/** For IPv4: the header has no options. */
function isBare(family: Family): readonly Expression[] {
  if (family === 6) return []
  return [payload(NETWORK_HEADER, 0, 1, 0), compare(0, EQUAL, Uint8Array.of(0x45))]
}

/** Loads the protocol that the IP header itself names. The type of an extension header is no key of any set. */
function bareProtocol(family: Family, into: number): Expression {
  return payload(NETWORK_HEADER, family === 4 ? 9 : 6, 1, into)
}

/** Sends a packet on by its protocol: with or without ports, and whether it can be a reply. */
function kindRules(side: Side, family: Family): readonly Rule[] {
  const kinds = `${side}_kinds${family}`
  const [ported, plain] = [`${side}_ported${family}`, `${side}_plain${family}`]
  const is = (protocol: number): readonly Expression[] => [
    meta(META.l4proto, 0),
    compare(0, EQUAL, Uint8Array.of(protocol)),
  ]
  const isSyn = [
    payload(TRANSPORT_HEADER, 13, 1, 0),
    mask(0, 0, Uint8Array.of(0x17)),
    compare(0, EQUAL, Uint8Array.of(0x02)),
  ]
  const icmp = family === 4 ? 1 : 58
  return [
    ...exceptionRules(side, family, kinds),
    { chain: kinds, expressions: [...is(TCP), ...isSyn, goTo(ported)] },
    ...[TCP, 17, 132, icmp].map((protocol) => ({
      chain: kinds,
      expressions: [...is(protocol), ...isReply, count('verdict_reply'), verdict('accept')],
    })),
    ...[TCP, 17, 132].map((protocol) => ({
      chain: kinds,
      expressions: [...is(protocol), goTo(ported)],
    })),
    { chain: kinds, expressions: [goTo(plain)] },
  ]
}

function group(octets: number, first: number): Uint8Array {
  return Uint8Array.of(first, ...new Uint8Array(octets - 1))
}

const isReply: readonly Expression[] = [
  ct(CT.direction, 0),
  compare(0, EQUAL, Uint8Array.of(1)),
  ct(CT.labels, 0),
  mask(0, 0, LABEL),
  compare(0, NOT_EQUAL, new Uint8Array(16)),
]
