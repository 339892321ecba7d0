// Parses and compares addresses and prefixes. Only this file parses their text, with ip-num. Inside the program an address is a family and
// 16 octets (IPv4 in the first 4, the rest zero). This form can be compared, hashed and written to the kernel without text. An IPv4-mapped
// IPv6 address (::ffff:0:0/96) is IPv4.

import { IPv4, IPv6 } from 'ip-num'
import { formatPrefix, plainGroups, plainQuad, type Family, type Prefix } from './ip-text.ts'

export { formatAddress, formatPrefix, type Family, type Prefix } from './ip-text.ts'

/** The width of an address of the family in bits. */
export function widthOf(family: Family): number {
  return family === 4 ? 32 : 128
}

/** Parses an address as a prefix of full length. Returns undefined for other text. Zone ids and short IPv4 forms are not addresses. */
export function parseAddress(text: string): Prefix | undefined {
  if (text.includes(':')) return parseAddress6(text)
  if (!/^\d{1,3}(\.\d{1,3}){3}$/.test(text)) return undefined
  const plain = plainQuad(text)
  if (plain !== undefined) return { family: 4, octets: plain, length: 32 }
  try {
    const octets = new Uint8Array(16)
    new IPv4(text).getOctets().forEach((octet, i) => (octets[i] = octet.getValue()))
    return { family: 4, octets, length: 32 }
  } catch {
    return undefined
  }
}

function parseAddress6(text: string): Prefix | undefined {
  const groups = plainGroups(text)
  if (groups !== undefined) return unmap({ family: 6, octets: groups, length: 128 })
  const plain = embedDottedQuad(text)
  if (plain === undefined) return undefined
  try {
    const octets = new Uint8Array(16)
    let value = new IPv6(plain).getValue()
    for (let i = 15; i >= 0; i--) {
      octets[i] = Number(value & 0xffn)
      value >>= 8n
    }
    return unmap({ family: 6, octets, length: 128 })
  } catch {
    return undefined
  }
}

/** Converts `::ffff:1.2.3.4` to `::ffff:102:304`, because ip-num takes only hexadecimal groups. */
function embedDottedQuad(text: string): string | undefined {
  const at = text.lastIndexOf(':')
  const tail = text.slice(at + 1)
  if (!tail.includes('.')) return /^[0-9a-fA-F:]+$/.test(text) ? text : undefined
  const quad = parseAddress(tail)
  if (quad === undefined || quad.family !== 4) return undefined
  const [a = 0, b = 0, c = 0, d = 0] = quad.octets
  return `${text.slice(0, at + 1)}${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`
}

function unmap(prefix: Prefix): Prefix {
  const { octets, length } = prefix
  if (length < 96 || !isMapped(octets, 0)) return prefix
  const plain = new Uint8Array(16)
  plain.set(octets.subarray(12, 16))
  return { family: 4, octets: plain, length: length - 96 }
}

/** True if the 16 octets at `offset` are an IPv4-mapped IPv6 address (RFC 4291 2.5.5.2). */
export function isMapped(octets: Uint8Array, offset: number): boolean {
  for (let i = 0; i < 10; i++) if (octets[offset + i] !== 0) return false
  return octets[offset + 10] === 0xff && octets[offset + 11] === 0xff
}

export type PrefixResult =
  | { readonly kind: 'ok'; readonly prefix: Prefix }
  | { readonly kind: 'bad'; readonly reason: string }

/** Parses `ADDRESS/LENGTH`. An address without length is a /32 or /128. Host bits must be zero. */
export function parsePrefix(text: string): PrefixResult {
  const result = parseMaskedPrefix(text)
  if (result.kind === 'bad' || !result.masked) return result
  return bad(`host bits must be zero: write ${formatPrefix(result.prefix)}, not ${text}`)
}

export type MaskedPrefixResult =
  | { readonly kind: 'ok'; readonly prefix: Prefix; readonly masked: boolean }
  | { readonly kind: 'bad'; readonly reason: string }

/** Parses `ADDRESS/LENGTH` and clears the host bits. `masked` is true if a host bit was set. */
export function parseMaskedPrefix(text: string): MaskedPrefixResult {
  const slash = text.indexOf('/')
  const address = parseAddress(slash < 0 ? text : text.slice(0, slash))
  if (address === undefined)
    return bad(`expected an address or prefix, found ${JSON.stringify(text)}`)
  if (slash < 0) return { kind: 'ok', prefix: address, masked: false }
  const lengthText = text.slice(slash + 1)
  const mapped = address.family === 4 && text.includes(':')
  const length = /^\d{1,3}$/.test(lengthText) ? Number(lengthText) - (mapped ? 96 : 0) : -1
  if (length < 0 || length > widthOf(address.family)) {
    return bad(
      `expected a prefix length of 0 to ${widthOf(address.family)}, found ${JSON.stringify(lengthText)}`,
    )
  }
  if (/^0\d/.test(lengthText)) {
    const plain = `${text.slice(0, slash)}/${Number(lengthText)}`
    return bad(`a prefix length has no leading zero: write ${plain}, not ${text}`)
  }
  const prefix = truncatePrefix(address, length)
  const masked = !prefix.octets.every((octet, i) => octet === address.octets[i])
  return { kind: 'ok', prefix, masked }
}

function bad(reason: string): { readonly kind: 'bad'; readonly reason: string } {
  return { kind: 'bad', reason }
}

/** Returns `prefix` with `length` bits. All bits after these are cleared. */
export function truncatePrefix(prefix: Prefix, length: number): Prefix {
  const octets = new Uint8Array(16)
  const whole = length >> 3
  octets.set(prefix.octets.subarray(0, whole))
  if (whole < 16) octets[whole] = (prefix.octets[whole] ?? 0) & (0xff00 >> (length & 7))
  return { family: prefix.family, octets, length }
}

/** Returns the two halves of `prefix`. `prefix` must be shorter than an address of its family. */
export function halvesOf(prefix: Prefix): readonly [Prefix, Prefix] {
  const { family, length } = prefix
  const octets = Uint8Array.from(prefix.octets)
  octets[length >> 3]! |= 0x80 >> (length & 7)
  return [
    { ...prefix, length: length + 1 },
    { family, octets, length: length + 1 },
  ]
}

/** True if `inner` is equal to `outer` or inside it. */
export function containsPrefix(outer: Prefix, inner: Prefix): boolean {
  if (outer.family !== inner.family || outer.length > inner.length) return false
  return commonBits(outer.octets, 0, inner.octets, 0, outer.length) === outer.length
}

/** How many leading bits two addresses have in common, at most `limit`. */
export function commonBits(
  a: Uint8Array,
  aOffset: number,
  b: Uint8Array,
  bOffset: number,
  limit: number,
): number {
  for (let i = 0; i * 8 < limit; i++) {
    const difference = a[aOffset + i]! ^ b[bOffset + i]!
    if (difference !== 0) return Math.min(limit, i * 8 + Math.clz32(difference) - 24)
  }
  return limit
}

export function isLoopback(family: Family, octets: Uint8Array, offset = 0): boolean {
  if (family === 4) return octets[offset] === 127
  for (let i = 0; i < 15; i++) if (octets[offset + i] !== 0) return false
  return octets[offset + 15] === 1
}
