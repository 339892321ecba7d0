// `whyNoName` finds texts that have the form of a name and are hardly meant as names: addresses, and addresses with a slip. Programs take
// such a text as an address and do not ask DNS for it. The last DNS label of a name is never digits alone (RFC 3696 section 2).

import { parseAddress } from './ip.ts'

/** Returns why a text or pattern is no name, as words after `which`. Undefined for other texts. */
export function whyNoName(text: string): string | undefined {
  if (parseAddress(text) !== undefined) return 'is an address'
  if (looksLikeAddress6(text)) return 'looks like an IPv6 address, and is none'
  if (/^\d+(?:\.\d+)*\.?$/.test(text)) {
    return 'looks like an address, and is none: an IPv4 address has four numbers from 0 to 255'
  }
  if (/^\d+(?:\.[\d*-]+)+$/.test(text)) {
    return 'looks like several addresses: write a prefix, such as 10.0.0.0/24'
  }
  return /\.\d+\.?$/.test(text) ? 'ends in digits alone, and no name does' : undefined
}

/** True for text with two colons that begins as an IPv6 address does. */
export function looksLikeAddress6(text: string): boolean {
  return /^[0-9a-f]{0,4}:.*:/i.test(text)
}
