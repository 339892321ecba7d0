// Addresses as octets. IPv4-mapped IPv6 is left unchanged, because records and replies carry it in this form.

/** 4 or 16 octets of an address. Undefined if the text is not an address. */
export function octetsOf(text: string): Uint8Array | undefined {
  if (/^\d+(\.\d+){3}$/.test(text)) return Uint8Array.from(text.split('.'), Number)
  if (!/^[0-9a-f:.]*:[0-9a-f:.]*$/i.test(text)) return undefined
  const tail = /(?<=:)\d+(?:\.\d+){3}$/.exec(text)?.[0]
  const plain = tail === undefined ? text : text.slice(0, -tail.length) + asGroups(tail)
  const [head = '', rest] = plain.split('::')
  const [before, behind] = [groupsOf(head), groupsOf(rest ?? '')]
  const zeros = new Array<number>(Math.max(0, 8 - before.length - behind.length)).fill(0)
  const groups = rest === undefined ? before : [...before, ...zeros, ...behind]
  if (groups.length !== 8) return undefined
  return Uint8Array.from(groups.flatMap((group) => [group >> 8, group & 255]))
}

/** One text for each address, for every way to write it. */
export function canonicalAddress(text: string): string {
  const octets = octetsOf(text)
  if (octets === undefined) throw new Error(`not an address: ${text}`)
  if (octets.length === 4) return octets.join('.')
  const groups = Array.from(
    { length: 8 },
    (_, i) => ((octets[i * 2] ?? 0) << 8) | (octets[i * 2 + 1] ?? 0),
  )
  return groups.map((group) => group.toString(16)).join(':')
}

function asGroups(quad: string): string {
  const [a = 0, b = 0, c = 0, d = 0] = quad.split('.').map(Number)
  return `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`
}

function groupsOf(text: string): readonly number[] {
  return text === '' ? [] : text.split(':').map((group) => parseInt(group, 16))
}
