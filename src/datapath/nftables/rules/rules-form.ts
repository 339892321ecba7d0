// These rules check the form that a packet must have to be judged at all. The kernel itself refuses bad lengths and checksums
// before any rule, and it reassembles fragments. These rules check the rest: headers that are too short, data offsets, routes,
// options.

import type { Family } from '../../../core/ip.ts'
import {
  compare,
  EQUAL,
  extension,
  goTo,
  jump,
  GREATER_OR_EQUAL,
  mask,
  META,
  meta,
  NETWORK_HEADER,
  NOT_EQUAL,
  payload,
  TRANSPORT_HEADER,
  verdict,
  type Expression,
} from '../netlink/expressions.ts'
import type { Rule } from './rule.ts'

const ROUTING = 43
/** Most words of options in an IPv4 header. */
const OPTION_WORDS = 10
/** This mask is zero in all bits in which padding and end of options can differ. */
const NOT_PADDING = Uint8Array.of(0xfe, 0xfe, 0xfe, 0xfe)
const ROUTER_ALERT = Uint8Array.of(0x94, 0x04, 0, 0)

/** By protocol, the offset and length of the last octets that a header must have. */
const NEEDED: readonly (readonly [protocol: number, offset: number, length: number])[] = [
  [6, 18, 2],
  [17, 6, 2],
  [132, 8, 4],
]

export function formRules(family: Family, chain: string): readonly Rule[] {
  const checked = `${chain}_form`
  const icmp = [family === 4 ? 1 : 58, 4, 4] as const
  const is = (protocol: number): readonly Expression[] => [
    meta(META.l4proto, 0),
    compare(0, EQUAL, Uint8Array.of(protocol)),
  ]
  return [
    ...(family === 4 ? optionRules(chain) : routeRules(chain)),
    // A packet of the right form returns to this chain.
    { chain, expressions: [jump(checked)] },
    {
      chain: checked,
      expressions: [
        ...is(6),
        payload(TRANSPORT_HEADER, 18, 2, 0),
        payload(TRANSPORT_HEADER, 12, 1, 0),
        compare(0, GREATER_OR_EQUAL, Uint8Array.of(0x50)),
        verdict('return'),
      ],
    },
    ...[...NEEDED.slice(1), icmp].map(([protocol, offset, length]) => ({
      chain: checked,
      expressions: [
        ...is(protocol),
        payload(TRANSPORT_HEADER, offset, length, 0),
        verdict('return'),
      ],
    })),
    ...[...NEEDED, icmp].map(([protocol]) => ({
      chain: checked,
      expressions: [...is(protocol), goTo('malformed')],
    })),
  ]
}

/** Refuses every routing header, because the kernel finds only the first of several. */
function routeRules(chain: string): readonly Rule[] {
  return [{ chain, expressions: [extension(ROUTING, 0, 1, 0), goTo('malformed')] }]
}

/** Refuses IPv4 options other than padding and router alert, word by word. */
function optionRules(chain: string): readonly Rule[] {
  return Array.from({ length: OPTION_WORDS }, (_, i) => ({
    chain,
    expressions: [
      payload(NETWORK_HEADER, 0, 1, 0),
      mask(0, 0, Uint8Array.of(0x0f)),
      compare(0, GREATER_OR_EQUAL, Uint8Array.of(6 + i)),
      payload(NETWORK_HEADER, 20 + 4 * i, 4, 0),
      compare(0, NOT_EQUAL, ROUTER_ALERT),
      mask(0, 0, NOT_PADDING),
      compare(0, NOT_EQUAL, new Uint8Array(4)),
      goTo('malformed'),
    ],
  }))
}
