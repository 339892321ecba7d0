// This file has the parts of rules that are larger than one expression: the endpoint of a packet, its addresses, and the
// connection label of connections that a peer began.

import type { Family } from '../../../core/ip.ts'
import {
  compare,
  CT,
  ct,
  CT_STATE_NEW,
  EQUAL,
  immediate,
  load,
  lookup,
  mask,
  META,
  meta,
  NETWORK_HEADER,
  NOT_EQUAL,
  payload,
  setCt,
  word,
  type Expression,
} from '../netlink/expressions.ts'
import { LABEL_BIT, type Side } from './layout.ts'

export interface Rule {
  readonly chain: string
  readonly expressions: readonly Expression[]
}

export interface Chain {
  readonly name: string
  /** Only for an entry chain: netfilter's hook number and priority. */
  readonly hook?: { readonly number: number; readonly priority: number }
}

export const NFPROTO: Readonly<Record<Family, number>> = { 4: 2, 6: 10 }

export const TCP = 6

/** Loads the number of the endpoint that sent a packet of this side. */
export function endpoint(side: Side, into: number): readonly Expression[] {
  return numberOf(side === 'in' ? META.iif : META.oif, side, into)
}

/** Loads the number of the endpoint that receives a packet of this side. */
export function receiver(side: Side, into: number): readonly Expression[] {
  return numberOf(side === 'in' ? META.oif : META.iif, side, into)
}

/**
 * Continues if the interface at `from` has an endpoint. Uses registers 14 and 15 as scratch: before Linux 6.5, a lookup in a map
 * needs a place for the data.
 */
export function hasEndpoint(side: Side, from: number): Expression {
  return load(`hooks_${side}`, from, 14)
}

/** Uses registers 14 and 15 as scratch. */
function numberOf(key: number, side: Side, into: number): readonly Expression[] {
  return [meta(key, 14), ...lookup(`hooks_${side}`, 14, 15), copy(15, into)]
}

export function copy(from: number, into: number): Expression {
  return mask(from, into, word(0xffffffff))
}

const ADDRESS = {
  4: { source: 12, target: 16, size: 4, words: 1 },
  6: { source: 8, target: 24, size: 16, words: 4 },
} as const

export function address(family: Family, which: 'source' | 'target', into: number): Expression {
  return payload(NETWORK_HEADER, ADDRESS[family][which], ADDRESS[family].size, into)
}

/** How many registers an address takes. */
export function words(family: Family): number {
  return ADDRESS[family].words
}

export const LABEL = new Uint8Array(16)
LABEL[LABEL_BIT >> 3] = 1 << (LABEL_BIT & 7)

/** Marks a connection that its original side began properly. */
export const markBegun: readonly Expression[] = [
  ct(CT.state, 0),
  mask(0, 0, word(CT_STATE_NEW)),
  compare(0, NOT_EQUAL, word(0)),
  ct(CT.direction, 0),
  compare(0, EQUAL, Uint8Array.of(0)),
  immediate(LABEL, 0),
  setCt(CT.labels, 0),
]
