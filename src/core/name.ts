// Parses and formats domain names. Inside the program a name is wire octets: DNS labels with their length in front, a final zero octet, and
// ASCII letters in lower case (RFC 1035 3.1, RFC 4343). A name has at most 255 octets, a DNS label at most 63. Text is only for people.
// Octets outside A-Z a-z 0-9 - _ are written \DDD. So a DNS label that contains a dot is not read as two DNS labels.

/** The longest name in wire octets, with the final zero octet (RFC 1035 2.3.4). */
export const NAME_OCTETS_MAX = 255
/** The longest DNS label in octets (RFC 1035 2.3.4). */
export const LABEL_OCTETS_MAX = 63

export type NameResult =
  | { readonly kind: 'ok'; readonly name: Uint8Array }
  | { readonly kind: 'bad'; readonly reason: string }

/** Parses a name as a person writes it. The final dot is optional, `.` or an empty text is the root, and `\DDD` is one octet. */
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

/** The lower case of one ASCII octet. */
export function lower(octet: number): number {
  return octet >= 0x41 && octet <= 0x5a ? octet + 32 : octet
}

/** The length in octets of the uncompressed name at `offset`, with the final zero octet. */
export function nameLength(wire: Uint8Array, offset = 0): number {
  let at = offset
  while (wire[at]! !== 0) at += wire[at]! + 1
  return at + 1 - offset
}

/** Formats a name as text without final dot. The root is `.`. Octets outside A-Z a-z 0-9 - _ are written `\DDD`. */
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
