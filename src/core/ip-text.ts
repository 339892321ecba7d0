// Formats addresses and prefixes, and parses the most common texts octet by octet, without a library and without a regular expression.
// Loading 100,000 addresses and a fast start need these quick readers; break-glass mode, which must be quick, only formats. For any other
// text the readers return undefined, and the parser in ip.ts decides.

const DOT = 0x2e
const COLON = 0x3a
const ZERO = 0x30
const NINE = 0x39
const GROUPS = 8

export type Family = 4 | 6

/** `octets` always has 16 octets; bits after `length` are zero. `length` is 0..32 (IPv4) or 0..128 (IPv6). */
export interface Prefix {
  readonly family: Family
  readonly octets: Uint8Array
  readonly length: number
}

/** Formats an address: dotted decimal (IPv4) or RFC 5952 (IPv6). */
export function formatAddress(family: Family, octets: Uint8Array, offset = 0): string {
  if (family === 4) {
    return `${octets[offset]}.${octets[offset + 1]}.${octets[offset + 2]}.${octets[offset + 3]}`
  }
  const groups: number[] = []
  for (let i = 0; i < 16; i += 2) groups.push((octets[offset + i]! << 8) | octets[offset + i + 1]!)
  const [start, length] = longestZeroRun(groups)
  const hex = (part: readonly number[]) => part.map((group) => group.toString(16)).join(':')
  if (length < 2) return hex(groups)
  return `${hex(groups.slice(0, start))}::${hex(groups.slice(start + length))}`
}

/** The first of the longest runs of zero groups (RFC 5952 4.2.3). */
function longestZeroRun(groups: readonly number[]): readonly [start: number, length: number] {
  let best: readonly [number, number] = [0, 0]
  for (let start = 0; start < groups.length; start++) {
    let end = start
    while (end < groups.length && groups[end] === 0) end++
    if (end - start > best[1]) best = [start, end - start]
    if (end > start) start = end
  }
  return best
}

/** Formats a prefix as `ADDRESS/LENGTH`. The length is always written. */
export function formatPrefix(prefix: Prefix): string {
  return `${formatAddress(prefix.family, prefix.octets, 0)}/${prefix.length}`
}

/** The 16 octets of a dotted quad without leading zeros. `text` has only digits and dots. Undefined: parse the text in another way. */
export function plainQuad(text: string): Uint8Array | undefined {
  const octets = new Uint8Array(16)
  let [at, value, digits] = [0, 0, 0]
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === DOT) {
      octets[at++] = value
      value = digits = 0
      continue
    }
    if (digits++ > 0 && value === 0) return undefined
    value = value * 10 + code - ZERO
    if (value > 255) return undefined
  }
  octets[at] = value
  return octets
}

/** The 16 octets of groups of at most four hexadecimal digits, with at most one `::`. Undefined: parse the text in another way. */
export function plainGroups(text: string): Uint8Array | undefined {
  const octets = new Uint8Array(16)
  let [group, value, digits, gap] = [0, 0, 0, -1]
  const end = text.length
  for (let i = 0; i < end; i++) {
    const code = text.charCodeAt(i)
    if (code !== COLON) {
      const digit = hexDigit(code)
      if (digit < 0 || ++digits > 4) return undefined
      value = (value << 4) | digit
      continue
    }
    const isGap = i + 1 < end && text.charCodeAt(i + 1) === COLON
    if (digits === 0 ? i > 0 || !isGap : group === GROUPS) return undefined
    if (digits > 0) setGroup(octets, group++, value)
    value = digits = 0
    if (!isGap) continue
    if (gap >= 0) return undefined
    gap = group
    i++
  }
  if (digits > 0 && group < GROUPS) setGroup(octets, group++, value)
  else if (digits > 0 || gap !== group) return undefined
  return gap < 0 ? whole(octets, group) : widened(octets, group, gap)
}

function whole(octets: Uint8Array, groups: number): Uint8Array | undefined {
  return groups === GROUPS ? octets : undefined
}

/** Moves the groups after `::` to the end, and fills the gap with zeros. */
function widened(octets: Uint8Array, groups: number, gap: number): Uint8Array | undefined {
  if (groups >= GROUPS) return undefined
  const behind = 2 * (groups - gap)
  octets.copyWithin(16 - behind, 2 * gap, 2 * groups)
  octets.fill(0, 2 * gap, 16 - behind)
  return octets
}

function setGroup(octets: Uint8Array, group: number, value: number): void {
  octets[2 * group] = value >> 8
  octets[2 * group + 1] = value & 0xff
}

function hexDigit(code: number): number {
  if (code >= ZERO && code <= NINE) return code - ZERO
  const letter = code | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x61 + 10 : -1
}
