// This file encodes expressions of rules, one function for each, with the numbers of linux/netfilter/nf_tables.h. Registers are
// the kernel's 32-bit registers 0 to 15. A longer value also uses the registers after it. A lookup that finds nothing ends its
// rule. So does every other expression that has no value to load.

import type { Message } from './message.ts'

/** One expression of a rule. */
export type Expression = (to: Message) => void

const FIRST_REGISTER = 8
const EXPR_NAME = 1
const EXPR_DATA = 2
const LIST_ELEM = 1
const DATA_VALUE = 1
const DATA_VERDICT = 2

export const NETWORK_HEADER = 1
export const TRANSPORT_HEADER = 2

export const META = {
  mark: 3,
  iif: 4,
  oif: 5,
  iifname: 6,
  oifname: 7,
  nfproto: 15,
  l4proto: 16,
} as const

export const CT = { state: 0, direction: 1, labels: 13 } as const
export const CT_STATE_NEW = 8
export const EQUAL = 0
export const NOT_EQUAL = 1
export const LESS = 2
export const GREATER_OR_EQUAL = 5

/** Numbers of linux/netfilter/nf_tables.h: enum nft_reject_types and enum nft_reject_inet_code. */
const REJECT_TCP_RESET = 1
const REJECT_ICMP = 2
const ICMP_PROHIBITED = 3

const VERDICT = { accept: 1, drop: 0, return: -5, jump: -3, goto: -4 } as const

function expression(name: string, data: (to: Message) => void): Expression {
  return (to) => {
    const element = to.open(LIST_ELEM)
    to.text(EXPR_NAME, name)
    const inner = to.open(EXPR_DATA)
    data(to)
    to.close(inner)
    to.close(element)
  }
}

function register(type: number, number: number, to: Message): void {
  to.u32(type, FIRST_REGISTER + number)
}

function value(to: Message, type: number, octets: Uint8Array): void {
  const data = to.open(type)
  to.bytes(DATA_VALUE, octets)
  to.close(data)
}

/** A number in the form in which registers hold it. */
export function word(number: number): Uint8Array {
  return new Uint8Array(new Uint32Array([number]).buffer)
}

export function meta(key: number, into: number): Expression {
  return expression('meta', (to) => {
    register(1, into, to)
    to.u32(2, key)
  })
}

export function payload(base: number, offset: number, length: number, into: number): Expression {
  return expression('payload', (to) => {
    register(1, into, to)
    to.u32(2, base)
    to.u32(3, offset)
    to.u32(4, length)
  })
}

export function immediate(octets: Uint8Array, into: number): Expression {
  return expression('immediate', (to) => {
    register(1, into, to)
    value(to, 2, octets)
  })
}

export function compare(from: number, how: number, octets: Uint8Array): Expression {
  return expression('cmp', (to) => {
    register(1, from, to)
    to.u32(2, how)
    value(to, 3, octets)
  })
}

/** Sets `into` to (`from` and `mask`) exclusive-or zero. */
export function mask(from: number, into: number, octets: Uint8Array): Expression {
  return expression('bitwise', (to) => {
    register(1, from, to)
    register(2, into, to)
    to.u32(3, octets.length)
    value(to, 4, octets)
    value(to, 5, new Uint8Array(octets.length))
  })
}

/** Continues if the key at `from` is in the set. */
export function contains(set: string, from: number): Expression {
  return expression('lookup', (to) => {
    to.text(1, set)
    register(2, from, to)
  })
}

/** Continues if the key at `from` is not in the set. */
export function lacks(set: string, from: number): Expression {
  return expression('lookup', (to) => {
    to.text(1, set)
    register(2, from, to)
    to.u32(5, 1)
  })
}

/** Loads all words that the map has for the key at `from`. */
export function load(map: string, from: number, into: number): Expression {
  return expression('lookup', (to) => {
    to.text(1, map)
    register(2, from, to)
    register(3, into, to)
  })
}

/**
 * Loads the second word that the map has for the key at `from`. Register `into - 1` receives the first word, which has no
 * meaning. This form avoids a bug of nft 1.0.6. When it lists a rule that uses a map's result as a key, it fails with an
 * assertion. It recognizes such a result only by the map's first word, and for the second word it remembers the zero that was
 * loaded before.
 */
export function lookup(map: string, from: number, into: number): readonly Expression[] {
  return [immediate(word(0), into), load(map, from, into - 1)]
}

/** Continues at the chain, or with the verdict, that the map of verdicts has for the key at `from`. */
export function decide(map: string, from: number): Expression {
  return expression('lookup', (to) => {
    to.text(1, map)
    register(2, from, to)
    to.u32(3, 0)
  })
}

/** Adds the key at `from` to a set. The key stays for the set's timeout. */
export function remember(set: string, from: number): Expression {
  return expression('dynset', (to) => {
    to.text(1, set)
    to.u32(3, 1)
    register(4, from, to)
  })
}

export function ct(key: number, into: number): Expression {
  return expression('ct', (to) => {
    register(1, into, to)
    to.u32(2, key)
  })
}

export function setCt(key: number, from: number): Expression {
  return expression('ct', (to) => {
    to.u32(2, key)
    register(4, from, to)
  })
}

/** Loads octets of an IPv6 extension header. If the packet lacks the header, the rule ends. */
export function extension(type: number, offset: number, length: number, into: number): Expression {
  return expression('exthdr', (to) => {
    register(1, into, to)
    to.u8(2, type)
    to.u32(3, offset)
    to.u32(4, length)
  })
}

/** Counts in a counter object of the table. */
export function count(name: string): Expression {
  return expression('objref', (to) => {
    to.u32(1, 1)
    to.text(2, name)
  })
}

/** Continues at most `perSecond` times a second. */
export function limit(perSecond: number, burst: number): Expression {
  return expression('limit', (to) => {
    to.u64(1, perSecond)
    to.u64(2, 1)
    to.u32(3, burst)
    to.u32(4, 0)
    to.u32(5, 0)
  })
}

/** Reports the packet's first octets to a group of nflog. */
export function log(group: number, prefix: string, octets: number): Expression {
  return expression('log', (to) => {
    to.u16(1, group)
    to.text(2, prefix)
    to.u32(3, octets)
    to.u16(4, 1)
  })
}

/** Redirects to this host itself, at the same port. Only in chains of type nat. */
export function redirect(): Expression {
  return expression('redir', () => undefined)
}

/** Sets a field of the packet, such as its mark. */
export function setMeta(key: number, from: number): Expression {
  return expression('meta', (to) => {
    to.u32(2, key)
    register(3, from, to)
  })
}

/**
 * Ends the packet, and answers its sender: a TCP reset, or an ICMP error that says `prohibited`. The kernel takes it in no chain
 * of POSTROUTING.
 */
export function reject(answer: 'tcp-reset' | 'prohibited'): Expression {
  return expression('reject', (to) => {
    to.u32(1, answer === 'tcp-reset' ? REJECT_TCP_RESET : REJECT_ICMP)
    if (answer === 'prohibited') to.u8(2, ICMP_PROHIBITED)
  })
}

export type VerdictName = keyof typeof VERDICT

/** Writes a verdict as data of an element or a rule. */
export function putVerdict(to: Message, type: number, name: VerdictName, chain?: string): void {
  const data = to.open(type)
  const inner = to.open(DATA_VERDICT)
  to.u32(1, VERDICT[name] >>> 0)
  if (chain !== undefined) to.text(2, chain)
  to.close(inner)
  to.close(data)
}

export function verdict(name: 'accept' | 'drop' | 'return'): Expression {
  return expression('immediate', (to) => {
    to.u32(1, 0)
    putVerdict(to, 2, name)
  })
}

export function goTo(chain: string): Expression {
  return expression('immediate', (to) => {
    to.u32(1, 0)
    putVerdict(to, 2, 'goto', chain)
  })
}

export function jump(chain: string): Expression {
  return expression('immediate', (to) => {
    to.u32(1, 0)
    putVerdict(to, 2, 'jump', chain)
  })
}
