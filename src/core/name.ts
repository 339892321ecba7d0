// Domain names as wire octets: length-prefixed labels and a final zero octet, ASCII letters in lower case
// (RFC 1035 3.1, RFC 4343). At most 255 octets in all, 63 a label. Text exists only for people: octets
// outside A-Z a-z 0-9 - _ are written \DDD, so a label that contains a dot cannot be read as two labels.

/** Longest name in wire octets, the final zero included (RFC 1035 2.3.4). */
export const NAME_OCTETS_MAX = 255
/** Longest label in octets (RFC 1035 2.3.4). */
export const LABEL_OCTETS_MAX = 63

export type NameResult =
  | { readonly kind: 'ok'; readonly name: Uint8Array }
  | { readonly kind: 'bad'; readonly reason: string }

/** Parses a name as a person writes it: final dot optional, `.` or nothing is the root, `\DDD` is one octet. */
export function parseName(text: string): NameResult {
  const octets: number[] = []
  let label: number[] = []
  const endLabel = (): string | undefined => {
    if (label.length === 0) return 'empty label'
    if (label.length > LABEL_OCTETS_MAX) return `label longer than ${LABEL_OCTETS_MAX} octets`
    octets.push(label.length, ...label)
    label = []
    return undefined
  }
  const body = text === '.' ? '' : text
  for (let i = 0; i < body.length; i++) {
    const code = body.charCodeAt(i)
    if (code === 0x2e) {
      const fault = endLabel()
      if (fault !== undefined) return { kind: 'bad', reason: fault }
    } else if (code === 0x5c) {
      const escaped = /^\\(\d{3}|[!-/:-~])/.exec(body.slice(i, i + 4))?.[1]
      const value =
        escaped === undefined ? -1 : escaped.length === 3 ? Number(escaped) : escaped.charCodeAt(0)
      if (value < 0 || value > 255 || escaped === undefined)
        return { kind: 'bad', reason: 'bad escape: expected \\DDD' }
      label.push(lower(value))
      i += escaped.length
    } else if (code > 0x7e || code <= 0x20) {
      return { kind: 'bad', reason: `character ${JSON.stringify(body[i])} must be written \\DDD` }
    } else {
      label.push(lower(code))
    }
  }
  if (label.length > 0 || body.startsWith('.')) {
    const fault = endLabel()
    if (fault !== undefined) return { kind: 'bad', reason: fault }
  }
  octets.push(0)
  if (octets.length > NAME_OCTETS_MAX)
    return { kind: 'bad', reason: `longer than ${NAME_OCTETS_MAX} octets` }
  return { kind: 'ok', name: Uint8Array.from(octets) }
}

/** Lower case of one ASCII octet. */
export function lower(octet: number): number {
  return octet >= 0x41 && octet <= 0x5a ? octet + 32 : octet
}

/** Octets of the uncompressed name that starts at `offset`, the final zero included. */
export function nameLength(wire: Uint8Array, offset = 0): number {
  let at = offset
  while (wire[at]! !== 0) at += wire[at]! + 1
  return at + 1 - offset
}

/** Text without final dot; `.` for the root; octets outside A-Z a-z 0-9 - _ as `\DDD`. */
export function formatName(wire: Uint8Array, offset = 0): string {
  let text = ''
  for (let at = offset; wire[at]! !== 0; at += wire[at]! + 1) {
    if (text !== '') text += '.'
    for (let i = 1; i <= wire[at]!; i++) text += formatOctet(wire[at + i]!)
  }
  return text === '' ? '.' : text
}

function formatOctet(octet: number): string {
  const plain =
    (octet >= 0x61 && octet <= 0x7a) ||
    (octet >= 0x41 && octet <= 0x5a) ||
    (octet >= 0x30 && octet <= 0x39) ||
    octet === 0x2d ||
    octet === 0x5f
  return plain ? String.fromCharCode(octet) : `\\${String(octet).padStart(3, '0')}`
}
