// The addresses that docs/spec/semantics 4 never lets names teach, as Node's own lists of networks: the second opinion on names/guard.ts.
// Finds IPv4 addresses inside IPv6 ones by the forms of RFC 6052 2.2, RFC 3056, RFC 4380 4 and RFC 2765 2.1.

import { BlockList } from 'node:net'

/** `dns.protected-prefixes` of the run. */
export const PROTECTED = ['10.66.0.0/16', '2001:db8:66::/48'] as const

const FOUR: readonly (readonly [string, number])[] = [
  ['0.0.0.0', 8],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['224.0.0.0', 4],
  ['255.255.255.255', 32],
  ['10.66.0.0', 16],
]
const SIX: readonly (readonly [string, number])[] = [
  ['::', 128],
  ['::1', 128],
  ['fe80::', 10],
  ['ff00::', 8],
  ['2001:db8:66::', 48],
]

/** The node's own addresses. They do not depend on the machine, so a seed means the same everywhere. */
export const NODE: readonly string[] = ['127.0.0.1', '::1', '192.0.2.2', '2001:db8::2']

export class Guarded {
  readonly #list = new BlockList()

  constructor() {
    for (const [network, length] of FOUR) this.#list.addSubnet(network, length, 'ipv4')
    for (const [network, length] of SIX) this.#list.addSubnet(network, length, 'ipv6')
    for (const each of NODE) this.#list.addAddress(each, each.includes(':') ? 'ipv6' : 'ipv4')
  }

  /** `address` in RFC 5952 form, IPv4-mapped IPv6 as IPv4. */
  has(address: string): boolean {
    if (!address.includes(':')) return this.#list.check(address, 'ipv4')
    const inside = embedded(expand(address))
    return (
      this.#list.check(address, 'ipv6') || inside.some((four) => this.#list.check(four, 'ipv4'))
    )
  }
}

/** 16 octets of an IPv6 address without a dotted part. */
function expand(address: string): readonly number[] {
  const [head = '', tail] = address.split('::')
  const groupsOf = (text: string): number[] =>
    text === '' ? [] : text.split(':').map((group) => parseInt(group, 16))
  const [before, behind] = [groupsOf(head), groupsOf(tail ?? '')]
  const zeros = new Array<number>(8 - before.length - behind.length).fill(0)
  return [...before, ...zeros, ...behind].flatMap((group) => [group >> 8, group & 255])
}

/** Every IPv4 address that such an IPv6 address can contain. */
function embedded(octets: readonly number[]): readonly string[] {
  const start = (length: number): string =>
    octets
      .slice(0, length)
      .map((octet) => octet.toString(16).padStart(2, '0'))
      .join('')
  const at = (...places: readonly number[]): string => places.map((i) => octets[i]).join('.')
  const found: string[] = []
  if (start(12) === '0064ff9b0000000000000000') found.push(at(12, 13, 14, 15))
  if (start(12) === '000000000000000000000000') found.push(at(12, 13, 14, 15))
  if (start(2) === '2002') found.push(at(2, 3, 4, 5))
  if (start(12) === '0000000000000000ffff0000') found.push(at(12, 13, 14, 15))
  if (start(4) === '20010000') {
    const client = octets.slice(12).map((octet) => octet ^ 255)
    found.push(at(4, 5, 6, 7), client.join('.'))
  }
  if (start(6) === '0064ff9b0001') {
    const readings = [at(6, 7, 9, 10), at(7, 9, 10, 11), at(9, 10, 11, 12), at(12, 13, 14, 15)]
    // The prefix's length is unknown. A reading in 0.0.0.0/8 comes from a wrong length.
    found.push(...readings.filter((four) => !four.startsWith('0.')))
  }
  return found
}
