// Describes the query parameters of the admin API that select flows and rows, for the table of operations.

export interface Parameter {
  readonly name: string
  readonly in: 'query' | 'path' | 'header'
  readonly about: string
  /** JSON Schema of the value. */
  readonly schema: object
}

export const TEXT = { type: 'string' } as const
export const WHOLE = { type: 'integer', minimum: 0 } as const
export const ONE = { type: 'string', enum: ['1'] } as const
/** The parameter can be repeated, once for each value. */
const TEXTS = { type: 'array', items: TEXT } as const

export function query(name: string, about: string, schema: object): Parameter {
  return { name, in: 'query', about, schema }
}

const FILTERS: readonly Parameter[] = [
  query('endpoint', 'Only flows of the endpoint with this name. The endpoint must exist', TEXTS),
  query(
    'name',
    'Only flows with this name, or with a name that matches this pattern, as in policies: the name of a question, or a name of the peer of a packet',
    TEXTS,
  ),
  query('address', 'Only flows whose client or peer has this address or is in this prefix', TEXTS),
  query('port', 'Only packets to this port, or to a range of ports such as 8000-8100', TEXTS),
  query(
    'protocol',
    'Only packets of tcp, udp, sctp, icmp, icmpv6 or a protocol number. `dns`: only DNS decisions',
    TEXTS,
  ),
  query('verdict', 'Only flows with this verdict or kind', TEXTS),
]

/** The parameters of `/v1/flows`. Every filter can be turned around. */
export const FLOW_PARAMETERS: readonly Parameter[] = [
  query('follow', '`1`: continue with new flows', ONE),
  query('last', 'Only the last so many flows that match', { ...WHOLE, maximum: 999_999_999 }),
  query('since', 'Only flows of the last time, such as 10m or 24h', TEXT),
  ...FILTERS,
  ...FILTERS.map(({ name }) =>
    query(`not-${name}`, `Leaves out the flows that \`${name}\` selects`, TEXTS),
  ),
]

/** The parameters of the lists of names, prefixes and identities. */
export const ROW_PARAMETERS: readonly Parameter[] = [
  query('endpoint', 'Only what this endpoint learned, and its own addresses', TEXT),
  query('name', 'Only this name, or names that match this pattern, as in policies', TEXT),
  query('prefix', 'Only addresses in this prefix, and prefixes that overlap it', TEXT),
]
