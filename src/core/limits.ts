// Lists every bound of docs/spec/semantics 6 in one table: what it bounds, its default and unit, and what happens at the bound. The config
// sets a bound of `LIMITS` as `limits.<key>`. The bounds of `OTHER_BOUNDS` have keys elsewhere, or none.

/** `count`: a number of things. `ms`: milliseconds. `octets`: the size of a message or file. */
export type LimitUnit = 'count' | 'ms' | 'octets'

export interface Limit {
  readonly default: number
  readonly unit: LimitUnit
  readonly min: number
  readonly max: number
  /** What is bounded. */
  readonly doc: string
  /** What namegate does when there would be more. Begins with a verb. */
  readonly atBound: string
}

const COUNT_MAX = 2 ** 30

function count(
  value: number,
  doc: string,
  atBound: string,
  more: Partial<Pick<Limit, 'min' | 'max'>> = {},
): Limit {
  return {
    default: value,
    unit: 'count',
    min: 1,
    max: COUNT_MAX,
    doc,
    atBound,
    ...more,
  }
}

function time(value: number, doc: string, atBound: string): Limit {
  return { default: value, unit: 'ms', min: 1, max: 86_400_000, doc, atBound }
}

const REFUSED = 'refuses the configuration and keeps the old one'
const REMOVE_ENTRY =
  'removes entries in this order: never connected, the soonest to expire first; no longer connected, the least recently connected first; connected'
const REMOVE_NAME =
  'removes the least recently asked name without an open connection, or else the least recently asked name; never removes exact names'
const USE_FALLBACK = 'uses an existing identity that differs only by missing fqdn: labels'
const CLOSE_IDLE = 'closes the oldest idle connection; if none is idle, refuses the new one'

/** Bounds whose keys are under `limits`. */
export const LIMITS = {
  'addresses-per-name': count(
    10_000,
    'entries (addresses) of one name that one endpoint asked',
    REMOVE_ENTRY,
  ),
  'names-per-wildcard': count(
    10_000,
    'names that one wildcard selector matches, per endpoint',
    REMOVE_NAME,
  ),
  'wildcard-names': count(
    2_000_000,
    'names under wildcard selectors, of all endpoints; a name counts once for each wildcard selector that matches it',
    'removes the least recently asked name of the endpoint that asks; if that endpoint has none, does not learn the new name; never removes exact names',
    { max: 2 ** 25 },
  ),
  'wildcard-names-per-endpoint': count(
    200_000,
    'names under wildcard selectors, per endpoint; a name counts once for each wildcard selector that matches it',
    REMOVE_NAME,
    { max: 2 ** 25 },
  ),
  'names-per-address': count(
    10_000,
    'names per address',
    'removes the name that was asked longest ago by the endpoint with the most names on the address; removes exact names last',
  ),
  'pairs-per-endpoint': count(100_000, '(name, address) entries per endpoint', REMOVE_ENTRY),
  pairs: count(
    1_000_000,
    '(endpoint, name, address) entries of all endpoints',
    'removes an entry of the endpoint that has the most',
    { max: 2 ** 24 },
  ),
  'reply-sockets': count(
    1_024,
    'sockets that send answers from the address that the client asked',
    'closes the least recently used socket',
    { max: 65_536 },
  ),
  'dynamic-identities': count(
    4_096,
    'identities created by answers, for all endpoints',
    USE_FALLBACK,
    { max: 2 ** 23 },
  ),
  'dynamic-identities-per-endpoint': count(
    512,
    'identities created by answers to one endpoint',
    USE_FALLBACK,
  ),
  'static-identities': count(
    1_000_000,
    'identities created by policies, endpoints and resources',
    REFUSED,
    {
      max: 2 ** 23,
    },
  ),
  selectors: count(200_000, 'selectors of all policies', REFUSED),
  endpoints: count(10_000, 'endpoints', REFUSED),
  resources: count(200_000, 'external resources', REFUSED),
  peers: count(
    20_000,
    'pods of other nodes that namegate knows (`kubernetes.peers: watch`)',
    'leaves out the pods that come later',
    { max: 200_000 },
  ),
  'policy-entries': count(
    16_384,
    'policy-map entries per endpoint',
    'refuses the whole configuration that needs more, and keeps the old one',
    { max: 2 ** 20 },
  ),
  'connections-per-endpoint': count(
    65_536,
    'open connections that the datapath remembers per endpoint',
    'allows a further connection while its address is live, and counts it; a connection other than TCP replaces the oldest one of its endpoint',
    { max: 2 ** 22 },
  ),
  connections: count(
    524_288,
    'open connections that the datapath remembers for all endpoints; half of them are reserved in equal shares for `limits.endpoints` endpoints',
    'gives no endpoint more than its share',
    { min: 1_024, max: 2 ** 24 },
  ),
  'queries-in-flight': count(
    65_536,
    'queries of all clients that wait for an upstream',
    'answers SERVFAIL',
    {
      max: 2 ** 20,
    },
  ),
  'queries-in-flight-per-client': count(
    4_096,
    'queries of one client that wait for an upstream',
    'answers SERVFAIL',
    { max: 2 ** 20 },
  ),
  'tcp-connections': count(4_096, 'TCP connections from all clients', CLOSE_IDLE, { max: 2 ** 20 }),
  'tcp-connections-per-client': count(64, 'TCP connections from one client', CLOSE_IDLE, {
    max: 2 ** 20,
  }),
  'queries-per-tcp-connection': count(
    256,
    'queries in flight on one TCP connection',
    'stops reading the connection until a query is answered',
    { max: 65_536 },
  ),
  'tcp-idle-timeout': time(
    10_000,
    'time for which a client can be silent on a TCP connection',
    'closes the connection',
  ),
  'tcp-message-timeout': time(
    5_000,
    'time in which a whole message must arrive on a TCP connection',
    'closes the connection',
  ),
  'udp-message': {
    default: 4_096,
    unit: 'octets',
    min: 512,
    max: 65_535,
    doc: 'length of a message over UDP',
    atBound: 'answers a longer query with FORMERR, and truncates a longer answer (TC)',
  },
} as const satisfies Readonly<Record<string, Limit>>

export type LimitKey = keyof typeof LIMITS

/** A value for every bound, in the unit of its row in LIMITS. Durations are milliseconds. */
export type Limits = Readonly<Record<LimitKey, number>>

/** Bounds whose keys are elsewhere in the config. `tcp-message` has no key, because the protocol fixes it (RFC 1035 4.2.2). */
export const OTHER_BOUNDS = {
  'upstreams.attempts': count(3, 'upstream attempts per query', 'answers SERVFAIL', { max: 16 }),
  'dns.hold.limit': time(
    100,
    'time for which one answer is held for the datapath',
    'does what dns.hold.on-limit says',
  ),
  'flows.max-size': {
    default: 256 * 2 ** 20,
    unit: 'octets',
    min: 2 ** 20,
    max: 2 ** 40,
    doc: 'total size of the flows on disk',
    atBound: 'removes the oldest flows',
  },
  'flows.keep': {
    default: 7 * 86_400_000,
    unit: 'ms',
    min: 60_000,
    max: 3650 * 86_400_000,
    doc: 'age of the flows on disk',
    atBound: 'removes the flows that are older',
  },
  'tcp-message': {
    default: 65_535,
    unit: 'octets',
    min: 65_535,
    max: 65_535,
    doc: 'length of a message over TCP',
    atBound: 'receives nothing longer, because the length field has 16 bits',
  },
} as const satisfies Readonly<Record<string, Limit>>

/** True if the text names a bound under `limits`. */
export function isLimitKey(text: string): text is LimitKey {
  return Object.hasOwn(LIMITS, text)
}

/** The defaults of docs/spec/semantics 6. `overrides` replaces some of them. */
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
    peers: value('peers'),
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
