// These rules admit the housekeeping of the link, and learn from packets that an endpoint receives. This table never sees ARP.
// IPv6 discovery passes if it goes to the link itself, or to an address that has shown itself on the link. An address shows
// itself by a packet with hop limit 255, which no host can forward.

import type { Family } from '../../../core/ip.ts'
import {
  compare,
  contains,
  count,
  EQUAL,
  goTo,
  immediate,
  mask,
  META,
  meta,
  NETWORK_HEADER,
  payload,
  remember,
  TRANSPORT_HEADER,
  verdict,
  word,
  type Expression,
} from '../netlink/expressions.ts'
import { MODE_NUMBER, type Side } from './layout.ts'
import { address, endpoint, hasEndpoint, markBegun, receiver, TCP, type Rule } from './rule.ts'

const ICMP6 = 58
const SOLICITS_ROUTER = 133
const ADVERTISES_ROUTER = 134
const SOLICITS = 135
const ADVERTISES = 136
const MULTICAST_REPORTS = [131, 132, 143]
const HOP_LIMIT_AT = 7

const isOctet = (base: number, offset: number, value: number): readonly Expression[] => [
  payload(base, offset, 1, 0),
  compare(0, EQUAL, Uint8Array.of(value)),
]
const isIcmp6 = [meta(META.l4proto, 0), compare(0, EQUAL, Uint8Array.of(ICMP6))]
/** The packet has no extension header. A filter of extension headers would not see the header after them. */
const isPlain = isOctet(NETWORK_HEADER, 6, ICMP6)

function isType(type: number): readonly Expression[] {
  return isOctet(TRANSPORT_HEADER, 0, type)
}

function isLinkLocal(which: 'source' | 'target'): readonly Expression[] {
  return [
    payload(NETWORK_HEADER, which === 'source' ? 8 : 24, 2, 0),
    mask(0, 0, Uint8Array.of(0xff, 0xc0)),
    compare(0, EQUAL, Uint8Array.of(0xfe, 0x80)),
  ]
}

const isLinkMulticast = [
  payload(NETWORK_HEADER, 24, 2, 0),
  compare(0, EQUAL, Uint8Array.of(0xff, 0x02)),
]

/** Packets that pass without policy and with any source. `known`: there is an endpoint, so its neighbours can be known. */
export function linkRules(
  side: Side,
  family: Family,
  chain: string,
  known: boolean,
): readonly Rule[] {
  if (family === 4) return []
  const pass = [count('verdict_neighbour'), verdict('accept')]
  const isDiscovery = (type: number): readonly Expression[] => [
    ...isIcmp6,
    ...isPlain,
    ...isOctet(NETWORK_HEADER, HOP_LIMIT_AT, 255),
    ...isType(type),
    ...isOctet(TRANSPORT_HEADER, 1, 0),
  ]
  const isNeighbour = [...endpoint(side, 0), address(6, 'target', 1), contains('neighbours', 0)]
  const targets = [isLinkMulticast, isLinkLocal('target'), ...(known ? [isNeighbour] : [])]
  const sources = [
    isLinkLocal('source'),
    [address(6, 'source', 0), compare(0, EQUAL, new Uint8Array(16))],
  ]
  return [
    ...[SOLICITS_ROUTER, SOLICITS, ADVERTISES].flatMap((type) =>
      targets.map((target) => ({ chain, expressions: [...isDiscovery(type), ...target, ...pass] })),
    ),
    ...MULTICAST_REPORTS.flatMap((type) =>
      sources.map((source) => ({
        chain,
        expressions: [
          ...isIcmp6,
          ...isOctet(NETWORK_HEADER, HOP_LIMIT_AT, 1),
          ...isType(type),
          ...isLinkMulticast,
          ...source,
          ...pass,
        ],
      })),
    ),
  ]
}

/** Learns from packets that an endpoint receives. No rule here drops a packet. */
export function learnRules(side: Side): readonly Rule[] {
  const [chain, to] = [`${side}_to`, `${side}_receiver`]
  const index = side === 'in' ? META.oif : META.iif
  const bypass = [immediate(word(MODE_NUMBER.bypass), 0), contains('mode', 0)]
  const dns = [payload(TRANSPORT_HEADER, 0, 2, 0), compare(0, EQUAL, Uint8Array.of(0, 53))]
  const isQuiet = [meta(index, 0), meta(META.nfproto, 1), contains('quiet', 0)]
  return [
    { chain, expressions: [...bypass, verdict('return')] },
    {
      chain,
      expressions: [meta(index, 0), hasEndpoint(side, 0), goTo(to)],
    },
    ...neighbourRules(side, to),
    ...[TCP, 17].map((protocol) => ({
      chain: to,
      expressions: [...isProtocol(protocol), ...dns, ...isQuiet, verdict('return')],
    })),
    {
      chain: to,
      expressions: [
        ...isProtocol(TCP),
        payload(TRANSPORT_HEADER, 13, 1, 0),
        mask(0, 0, Uint8Array.of(0x17)),
        compare(0, EQUAL, Uint8Array.of(0x02)),
        ...markBegun,
      ],
    },
    ...[17, 132].map((protocol) => ({
      chain: to,
      expressions: [...isProtocol(protocol), ...markBegun],
    })),
    { chain: to, expressions: [...isProtocol(1), ...isType(8), ...markBegun] },
    { chain: to, expressions: [...isProtocol(ICMP6), ...isType(128), ...markBegun] },
  ]
}

function isProtocol(protocol: number): readonly Expression[] {
  return [meta(META.l4proto, 0), compare(0, EQUAL, Uint8Array.of(protocol))]
}

/** Learns the addresses that show themselves: the sender of a discovery, and the subject of an advertisement. */
function neighbourRules(side: Side, chain: string): readonly Rule[] {
  const isSeen = [
    meta(META.nfproto, 0),
    compare(0, EQUAL, Uint8Array.of(10)),
    ...isIcmp6,
    ...isPlain,
    ...isOctet(NETWORK_HEADER, HOP_LIMIT_AT, 255),
    ...isOctet(TRANSPORT_HEADER, 1, 0),
  ]
  const note = (where: Expression): readonly Expression[] => [
    ...receiver(side, 0),
    where,
    remember('neighbours', 0),
  ]
  return [
    ...[ADVERTISES_ROUTER, SOLICITS, ADVERTISES].map((type) => ({
      chain,
      expressions: [...isSeen, ...isType(type), ...note(address(6, 'source', 1))],
    })),
    {
      chain,
      expressions: [...isSeen, ...isType(ADVERTISES), ...note(payload(TRANSPORT_HEADER, 8, 16, 1))],
    },
  ]
}
