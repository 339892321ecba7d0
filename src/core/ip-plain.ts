// Reads addresses in their commonest form, octet by octet without a regular expression: loading 100,000 of them and a fast start need
// that. For any other text these functions only answer "not plain", and the caller's full parser decides.

const DOT = 0x2e
const COLON = 0x3a
const ZERO = 0x30
const NINE = 0x39
const GROUPS = 8

/** The 16 octets of a dotted quad of digits and dots, without leading zeros; undefined: look closer. */
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

/** The 16 octets of groups of at most four hexadecimal digits, with at most one `::`; undefined: look closer. */
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

/** The groups behind the gap move to the end. */
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
