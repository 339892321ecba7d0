// The address hints of an SVCB or HTTPS record by a literal reading of RFC 9460 2.2, 2.4.2 and 7.3: the second opinion on dns/svcb.ts,
// because dns-packet has none. Cuts RDATA into a list of parameters first, then judges the list.

export interface Param {
  readonly key: number
  readonly value: Uint8Array
}

export interface Service {
  readonly priority: number
  /** Priority and TargetName, unchanged. */
  readonly head: Uint8Array
  readonly params: readonly Param[]
}

/** Addresses as text, mapped ones unchanged. Empty if the record is malformed, in AliasMode or without hints. */
export function hintsOf(rdata: Uint8Array): readonly string[] {
  const service = readService(rdata)
  if (service === undefined || service.priority === 0) return []
  return service.params.flatMap(({ key, value }) => {
    if (key === 4) return cut(value, 4).map((octets) => octets.join('.'))
    if (key === 6) return cut(value, 16).map(toText)
    return []
  })
}

/** Undefined if RDATA is malformed. */
export function readService(rdata: Uint8Array): Service | undefined {
  let rest = rdata.slice(2)
  if (rdata.length < 2) return undefined
  let size = 0
  for (let label = -1; label !== 0;) {
    label = rest[0] ?? 64
    size += label + 1
    if (label > 63 || rest.length < label + 1 || size > 255) return undefined
    rest = rest.slice(label + 1)
  }
  const head = rdata.slice(0, rdata.length - rest.length)
  const params: Param[] = []
  while (rest.length > 0) {
    const [k1 = 0, k2 = 0, l1 = 0, l2 = 0] = rest
    const length = l1 * 256 + l2
    if (rest.length < 4 + length) return undefined
    params.push({ key: k1 * 256 + k2, value: rest.slice(4, 4 + length) })
    rest = rest.slice(4 + length)
  }
  const keys = params.map(({ key }) => key)
  const rising = [...new Set(keys)].sort((x, y) => x - y)
  const isWhole = ({ key, value }: Param): boolean => {
    const unit = key === 4 ? 4 : key === 6 ? 16 : 0
    return unit === 0 || (value.length > 0 && value.length % unit === 0)
  }
  if (rising.join() !== keys.join() || !params.every(isWhole)) return undefined
  return { priority: (rdata[0] ?? 0) * 256 + (rdata[1] ?? 0), head, params }
}

export function cut(octets: Uint8Array, size: number): readonly Uint8Array[] {
  const count = octets.length / size
  return Array.from({ length: count }, (_, i) => octets.slice(i * size, (i + 1) * size))
}

function toText(octets: Uint8Array): string {
  return cut(octets, 2)
    .map(([high = 0, low = 0]) => (high * 256 + low).toString(16))
    .join(':')
}
