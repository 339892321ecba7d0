// Addresses and prefixes as text for people. Apart from ip.ts, so that a program that only shows addresses does not load the library that
// parses them: break-glass has to be quick.

export type Family = 4 | 6

/** `octets` is always 16 long; bits behind `length` are zero. `length` is 0..32 (IPv4) or 0..128 (IPv6). */
export interface Prefix {
  readonly family: Family
  readonly octets: Uint8Array
  readonly length: number
}

/** The address in the form of RFC 5952 (IPv6) or dotted decimal (IPv4). */
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

/** First of the longest runs of zero groups (RFC 5952 4.2.3). */
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

/** `ADDRESS/LENGTH`, always with length. */
export function formatPrefix(prefix: Prefix): string {
  return `${formatAddress(prefix.family, prefix.octets, 0)}/${prefix.length}`
}
