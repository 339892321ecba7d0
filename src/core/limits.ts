// Every bound of docs/spec/semantics 6 in one table: what it bounds, its default and unit, and what happens at it.
// `limits.<key>` of the config sets the first group; the second group has keys of its own or none.
// `built: false`: the bound is not enforced yet, so only its default is accepted.

/** `count`: how many; `ms`: milliseconds; `octets`: of one message or file. */
export type LimitUnit = 'count' | 'ms' | 'octets'

export interface Limit {
  readonly default: number
  readonly unit: LimitUnit
  readonly min: number
  readonly max: number
  /** The bounded things. */
  readonly doc: string
  /** What happens to the one too many. */
  readonly atBound: string
  readonly built: boolean
}

const COUNT_MAX = 2 ** 30

function count(
  value: number,
  doc: string,
  atBound: string,
  more: Partial<Pick<Limit, 'min' | 'max' | 'built'>> = {},
): Limit {
  return {
    default: value,
    unit: 'count',
    min: 1,
    max: COUNT_MAX,
    doc,
    atBound,
    built: true,
    ...more,
  }
}

function time(value: number, doc: string, atBound: string): Limit {
  return { default: value, unit: 'ms', min: 1, max: 86_400_000, doc, atBound, built: true }
}

const REFUSED = 'configuration refused, the old one stays'

/** Bounds that are keys under `limits`. */
export const LIMITS = {
  'addresses-per-name': count(
    10_000,
    'addresses kept per (endpoint, name)',
    'the least recently connected, not connected, soonest to expire goes',
  ),
  'names-per-wildcard': count(
    10_000,
    'names per wildcard selector per endpoint',
    'the least recently asked name without open connections goes; exact names are exempt',
  ),
  'wildcard-names': count(
    2_000_000,
    '(endpoint, wildcard selector, name) entries in all: a name counts under each wildcard that matches it',
    "the endpoint's own name asked least recently goes; it has none: the new one is left out; exact names are exempt",
    { max: 2 ** 25 },
  ),
  'wildcard-names-per-endpoint': count(
    200_000,
    '(wildcard selector, name) entries per endpoint',
    'the least recently asked name without open connections goes; exact names are exempt',
    { max: 2 ** 25 },
  ),
  'names-per-address': count(
    10_000,
    'names per address',
    'the least recently asked idle name goes',
  ),
  'pairs-per-endpoint': count(
    100_000,
    '(name, address) pairs per endpoint',
    'the least recently connected, not connected, soonest to expire goes',
  ),
  pairs: count(
    1_000_000,
    '(endpoint, name, address) pairs in all',
    'taken from the endpoint that has the most',
    { max: 2 ** 24 },
  ),
  'reply-sockets': count(
    1_024,
    'sockets that answer from asked addresses',
    'the least recently used is closed',
    { max: 65_536 },
  ),
  'dynamic-identities': count(
    4_096,
    'identities that answers make, in all',
    'an existing identity that differs only by missing fqdn: labels is used',
    { max: 2 ** 23 },
  ),
  'dynamic-identities-per-endpoint': count(
    512,
    'identities made by answers to one endpoint',
    'an existing identity that differs only by missing fqdn: labels is used',
  ),
  'static-identities': count(1_000_000, 'identities that configuration makes', REFUSED, {
    max: 2 ** 23,
  }),
  selectors: count(200_000, 'selectors of all policies', REFUSED),
  endpoints: count(10_000, 'endpoints', REFUSED),
  resources: count(200_000, 'external resources', REFUSED),
  'policy-entries': count(
    16_384,
    'policy-map entries per endpoint',
    'a configuration that needs more is refused whole, the old one stays',
    { max: 2 ** 20 },
  ),
  'connections-per-endpoint': count(
    65_536,
    'open connections remembered per endpoint',
    'counted; the flow passes while its address is live, and its own oldest flow goes',
    { max: 2 ** 22 },
  ),
  connections: count(
    524_288,
    'connections remembered in all; half of it is shared out for certain among `endpoints`',
    'no endpoint gets more than its share',
    { min: 1_024, max: 2 ** 24 },
  ),
  'queries-in-flight': count(65_536, 'queries that wait for an upstream, in all', 'SERVFAIL', {
    max: 2 ** 20,
  }),
  'queries-in-flight-per-client': count(
    4_096,
    'queries of one client that wait for an upstream',
    'SERVFAIL',
    { max: 2 ** 20 },
  ),
  'tcp-connections': count(
    4_096,
    'TCP connections from clients, in all',
    'the oldest idle one is closed; none idle: the new one is refused',
    { max: 2 ** 20 },
  ),
  'tcp-connections-per-client': count(
    64,
    'TCP connections from one client',
    'the oldest idle one is closed; none idle: the new one is refused',
    { max: 2 ** 20 },
  ),
  'queries-per-tcp-connection': count(
    256,
    'queries in flight on one TCP connection',
    'the connection is not read until one is answered',
    { max: 65_536 },
  ),
  'tcp-idle-timeout': time(10_000, 'how long a client may be silent on TCP', 'closed'),
  'tcp-message-timeout': time(5_000, 'how long a TCP message may take to arrive whole', 'closed'),
  'udp-message': {
    default: 4_096,
    unit: 'octets',
    min: 512,
    max: 65_535,
    doc: 'longest message over UDP',
    atBound: 'a longer query gets FORMERR, a longer answer TC',
    built: true,
  },
} as const satisfies Readonly<Record<string, Limit>>

export type LimitKey = keyof typeof LIMITS

/** A value for every bound, in the unit of its row (durations in milliseconds). */
export type Limits = Readonly<Record<LimitKey, number>>

/** Bounds whose key stands elsewhere in the config; `tcp-message` is fixed by the protocol (RFC 1035 4.2.2). */
export const OTHER_BOUNDS = {
  'upstreams.attempts': count(3, 'upstream attempts per query', 'SERVFAIL', { max: 16 }),
  'dns.hold.limit': time(100, 'how long one answer is held for the datapath', 'dns.hold.on-limit'),
  'flows.max-size': {
    default: 256 * 2 ** 20,
    unit: 'octets',
    min: 2 ** 20,
    max: 2 ** 40,
    doc: 'size of the kept flows on disk',
    atBound: 'the oldest go',
    built: false,
  },
  'flows.keep': {
    default: 7 * 86_400_000,
    unit: 'ms',
    min: 1_000,
    max: 3650 * 86_400_000,
    doc: 'age of the kept flows on disk',
    atBound: 'the oldest go',
    built: false,
  },
  'tcp-message': {
    default: 65_535,
    unit: 'octets',
    min: 65_535,
    max: 65_535,
    doc: 'longest message over TCP',
    atBound: 'can not be longer: the length field has 16 bits',
    built: false,
  },
} as const satisfies Readonly<Record<string, Limit>>

/** Whether the text names a bound under `limits`. */
export function isLimitKey(text: string): text is LimitKey {
  return Object.hasOwn(LIMITS, text)
}

/** The defaults of docs/spec/semantics 6, with some of them replaced. */
export function makeLimits(overrides: Partial<Limits> = {}): Limits {
  const value = (key: LimitKey): number => overrides[key] ?? LIMITS[key].default
  return {
    'addresses-per-name': value('addresses-per-name'),
    'names-per-wildcard': value('names-per-wildcard'),
    'wildcard-names': value('wildcard-names'),
    'wildcard-names-per-endpoint': value('wildcard-names-per-endpoint'),
    'names-per-address': value('names-per-address'),
    'pairs-per-endpoint': value('pairs-per-endpoint'),
    pairs: value('pairs'),
    'reply-sockets': value('reply-sockets'),
    'dynamic-identities': value('dynamic-identities'),
    'dynamic-identities-per-endpoint': value('dynamic-identities-per-endpoint'),
    'static-identities': value('static-identities'),
    selectors: value('selectors'),
    endpoints: value('endpoints'),
    resources: value('resources'),
    'policy-entries': value('policy-entries'),
    'connections-per-endpoint': value('connections-per-endpoint'),
    connections: value('connections'),
    'queries-in-flight': value('queries-in-flight'),
    'queries-in-flight-per-client': value('queries-in-flight-per-client'),
    'tcp-connections': value('tcp-connections'),
    'tcp-connections-per-client': value('tcp-connections-per-client'),
    'queries-per-tcp-connection': value('queries-per-tcp-connection'),
    'tcp-idle-timeout': value('tcp-idle-timeout'),
    'tcp-message-timeout': value('tcp-message-timeout'),
    'udp-message': value('udp-message'),
  }
}
