// These rules belong to the form that rejects (form.ts). In it, policy is enforced where processes send, and the packets that are
// judged there get a mark. A chain behind it drops each packet of an endpoint that has no mark.

import type { Family } from '../../../core/ip.ts'
import {
  compare,
  contains,
  count,
  EQUAL,
  immediate,
  META,
  meta,
  NETWORK_HEADER,
  NOT_EQUAL,
  payload,
  setMeta,
  verdict,
  word,
  type Expression,
} from '../netlink/expressions.ts'
import { address, NFPROTO, hasEndpoint, type Rule } from './rule.ts'

/** The entry chain that drops packets which were not judged where processes send. */
export const UNJUDGED = 'out_unjudged'
/** The mark of a packet that is judged. A process needs CAP_NET_ADMIN or CAP_NET_RAW to set a mark itself. */
const JUDGED = word(0x4e474a)
export const markJudged: readonly Expression[] = [immediate(JUDGED, 0), setMeta(META.mark, 0)]
const LOOPBACK_6 = Uint8Array.of(...new Uint8Array(15), 1)

/**
 * For the form that rejects. The kernel names the interface of a packet as it was before DNAT, so a query that was redirected to loopback
 * leaves by no endpoint. A packet of an endpoint without the mark was not judged.
 */
export function sendingRules(): readonly Rule[] {
  const unjudged = [
    meta(META.mark, 0),
    compare(0, NOT_EQUAL, JUDGED),
    count('drop_no_endpoint'),
    verdict('drop'),
  ]
  return [
    ...([4, 6] as const).map((family) => ({
      chain: 'out_from',
      expressions: [
        meta(META.nfproto, 0),
        compare(0, EQUAL, Uint8Array.of(NFPROTO[family])),
        ...isLoopback(family),
        verdict('return'),
      ],
    })),
    {
      chain: UNJUDGED,
      expressions: [meta(META.oif, 0), hasEndpoint('out', 0), ...unjudged],
    },
    {
      chain: UNJUDGED,
      expressions: [meta(META.oifname, 0), contains('fences_out', 0), ...unjudged],
    },
  ]
}

function isLoopback(family: Family): readonly Expression[] {
  if (family === 6) return [address(6, 'target', 0), compare(0, EQUAL, LOOPBACK_6)]
  return [payload(NETWORK_HEADER, 16, 1, 0), compare(0, EQUAL, Uint8Array.of(127))]
}
