// These rules are step 6 of the verdict. They look up the destination in at most four places, and the first place that has it
// decides. Then three lookups decide if the endpoint may send there.

import type { Family } from '../../../core/ip.ts'
import { worldOf } from '../../../identity/reserved.ts'
import {
  contains,
  decide,
  goTo,
  immediate,
  lookup,
  META,
  meta,
  payload,
  TRANSPORT_HEADER,
  word,
  type Expression,
} from '../netlink/expressions.ts'
import type { Side } from './layout.ts'
import { address, copy, endpoint, type Rule } from './rule.ts'

/** Loads the identity (register 5) and the class (register 7) of an address. */
export function identify(
  family: Family,
  map: 'exact' | 'ranges',
  own: boolean,
  side: Side,
  which: 'source' | 'target' = 'target',
): readonly Expression[] {
  const scope = own ? [...endpoint(side, 0), contains('scoped', 0)] : [immediate(word(0), 0)]
  return [
    ...scope,
    address(family, which, 1),
    immediate(word(0), 7),
    ...lookup(`${map}${family}`, 0, 5),
  ]
}

/** Makes the rules of step 6. */
export function judgeRules(side: Side, family: Family, ported: boolean): readonly Rule[] {
  const chain = `${side}_${ported ? 'ported' : 'plain'}${family}`
  const places = [
    identify(family, 'exact', true, side),
    identify(family, 'ranges', true, side),
    identify(family, 'exact', false, side),
    identify(family, 'ranges', false, side),
    [immediate(word(worldOf(family)), 5), immediate(word(worldOf(family)), 7)],
  ]
  const port = ported ? payload(TRANSPORT_HEADER, 2, 2, 13) : immediate(word(0), 13)
  // No rule here leaves a packet unjudged. So even a process that removes elements from a map cannot open anything.
  const closed = { chain, expressions: [goTo(`${side}_refuse`)] }
  const judged = places.map((place) => ({
    chain,
    expressions: [
      ...place,
      ...endpoint(side, 6),
      copy(6, 8),
      copy(6, 10),
      immediate(word(0), 9),
      meta(META.l4proto, 12),
      port,
      // From the last key to the first, because each lookup overwrites the register before its result.
      ...[9, 7, 5].flatMap((key, i) => [
        ...lookup('policies', key, 11),
        ...lookup('ports', 11, 3 - i),
      ]),
      decide(`verdicts_${side}${family}`, 1),
    ],
  }))
  return [...judged, closed]
}
