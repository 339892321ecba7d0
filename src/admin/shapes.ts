// The JSON that the admin API gives and `namegate get` prints (docs/spec/promises "Outside contracts"): fixed, other
// programs read it. Times are RFC 3339 UTC, addresses RFC 5952, prefixes have a length, names and selector texts are
// lower-case without final dot. These schemas are the one source: types of the views, of the CLI and of the library are inferred
// from them, and openapi.ts makes the OpenAPI document of them. Only openapi.ts loads this file; the others import types.

import { z } from 'zod'

const text = z.string()
const whole = z.int()
const flag = z.boolean()
const texts = z.array(text).readonly()
const numbers = z.array(whole).readonly()
const time = text.meta({ format: 'date-time' })
const mapping = z.record(z.string(), text).readonly()

/** An object with these fields. */
function shape<Fields extends z.ZodRawShape>(fields: Fields) {
  return z.object(fields).readonly()
}

function list<Fields extends z.ZodRawShape>(fields: Fields) {
  return z.array(shape(fields)).readonly()
}

const endpoint = shape({
  id: whole,
  name: text,
  addresses: texts,
  labels: texts,
  enforcing: flag,
  reason: text.describe(
    'Why it is not enforcing, and which setting of the endpoint, the node or a policy audits it; mostly empty',
  ),
  audit: flag,
  policies: texts,
  policyRevision: whole,
  realizedRevision: whole,
  adoptedFlows: whole.describe('Flows that are older than its enforcement and still pass'),
})

const resource = shape({
  name: text,
  addresses: texts,
  labels: texts,
  origin: z.enum(['file', 'api']),
  expires: time.nullable().describe('Null when it has no end'),
})

const resourceChange = shape({
  name: text,
  changed: flag.describe('False: it was the same before, perhaps with another end'),
  expires: time.nullable().describe('Null when it has no end, or is removed'),
  revision: whole.describe('Revision of the datapath that enforces it'),
  refused: whole.describe('Entries that the datapath refuses at present'),
})

const policy = shape({
  name: text.describe('Empty for a rejected file, in which no policy could be read'),
  namespace: text.nullable().describe('Null for a clusterwide policy'),
  kind: text.nullable(),
  file: text,
  endpoints: whole.describe('How many it selects'),
  selectors: texts,
  unseen: texts.describe('Name selectors that no answered name matched since they came into force'),
  audited: flag.describe('Its annotation namegate.io/audit is set: it denies nothing'),
  state: z.enum(['in-force', 'last-good', 'rejected']),
  error: text.nullable().describe('`file:line:column: message`, one a line'),
})

const selector = shape({
  selector: text,
  kind: z
    .enum(['fqdn', 'cidr', 'endpoints', 'named'])
    .describe('`named`: what each endpoint with `default-egress: allow-named` learned'),
  identities: numbers,
  names: whole.describe('Known names that it matches; 0 for a CIDR'),
  seen: flag
    .nullable()
    .describe(
      'Whether an answered name matched it since it came into force; null if it is no name',
    ),
  policies: texts,
})

const name = shape({
  name: text,
  endpoint: text,
  selectors: texts,
  addresses: list({
    address: text,
    expires: time.describe('End of the TTL'),
    state: z.enum(['live', 'grace', 'connected']),
  }),
})

const prefix = shape({
  prefix: text,
  identity: whole,
  labels: texts,
  owners: list({ kind: text, name: text, labels: texts }),
  endpoint: text
    .describe('The only endpoint that sees the prefix so; absent where it holds for the node')
    .exactOptional(),
})

const identity = shape({ id: whole, labels: texts, references: whole, preallocated: flag })

const entryMap = z.enum([
  'ng_mode',
  'ng_ipcache',
  'ng_policy',
  'ng_endpoints',
  'ng_source',
  'ng_adopted',
])
const entry = shape({ map: entryMap, key: text, value: text })

const difference = shape({
  map: z.enum([
    ...entryMap.options,
    ...(['tc', 'cgroup', 'netfilter', 'ng_config', 'ng_gate', 'ng_listeners'] as const),
  ]),
  key: text,
  want: text.nullable().describe('Null: it should not be there'),
  have: text.nullable().describe('Null: it is not there'),
})

const status = shape({
  health: z.enum(['ok', 'degraded']),
  ready: flag,
  notReady: texts,
  version: text,
  started: time,
  pid: whole,
  mode: z.enum(['enforce', 'audit', 'bypass']),
  datapath: shape({
    kind: text,
    revision: whole.describe('The last one in force'),
    desiredRevision: whole.describe('The one that will have all changes of now'),
    refused: whole.describe('Entries that it refuses at present'),
    stalled: flag.describe('Whether a commit has taken longer than a second'),
    held: whole.describe('Answers that wait for it'),
    repaired: whole.describe(
      'Entries that another program changed or deleted, and that were repaired',
    ),
  }),
  policyRevision: whole,
  realizedRevision: whole,
  endpoints: shape({ known: whole, enforcing: whole }),
  policies: whole,
  listeners: texts.describe(
    '`127.0.0.1:53`, with another mode than explicit `0.0.0.0:10053 (tproxy)`',
  ),
  interception: text.nullable().describe('Null when no listener has a transparent mode'),
  upstreams: list({
    address: text,
    answered: flag.nullable().describe('Null before it was asked'),
    state: z.enum(['up', 'failing', 'down']),
    first: flag.describe('Whether new queries ask it first'),
    rttMs: z.number().nullable().describe('Null before its first answer'),
    failures: whole,
  }),
  kept: shape({
    generation: whole,
    image: whole.describe('Octets'),
    journal: whole.describe('Octets'),
    age: whole.describe('Seconds since the last write'),
    faults: whole,
  })
    .nullable()
    .describe('The state folder; null where nothing is kept over restarts'),
  restart: shape({
    phase: z.enum(['pairs', 'claims', 'grace', 'leaving', 'done']),
    restored: whole,
    left: whole,
    claimed: whole,
    kept: whole,
  })
    .nullable()
    .describe(
      'Progress in restoring what the daemon before knew and enforced; null where nothing is kept',
    ),
  identityFallbacks: whole.describe(
    'Addresses that got a fallback identity with fewer fqdn labels',
  ),
  limits: list({
    limit: text,
    use: z.number().nullable().describe('Null where only hits are known'),
    bound: whole,
    hits: whole,
  }).describe('Bounds that are used by 80 % or more, and those that were hit since the start'),
  faults: list({ file: text, line: whole, column: whole, message: text }),
  warnings: texts,
})

const explanation = shape({
  verdict: z.enum(['allow', 'deny', 'audit']),
  reason: text,
  rules: list({ policy: text, file: text, line: whole, action: z.enum(['allow', 'deny']) }),
  selectors: texts,
  identities: numbers,
  labels: texts,
  default: shape({ egress: text, policies: texts, audited: texts }),
  nearest: shape({ policy: text, file: text, line: whole, missing: text }).nullable(),
  notes: texts,
})

const optional = text.exactOptional()

/** Schemas of bodies, by their names in the OpenAPI document. */
export const SCHEMAS = {
  Endpoint: endpoint,
  Policy: policy,
  Selector: selector,
  Name: name,
  Prefix: prefix,
  Identity: identity,
  Resource: resource,
  ResourceBody: shape({
    addresses: texts,
    labels: mapping.exactOptional(),
    ports: mapping.exactOptional(),
    ttl: optional,
  }),
  ResourceChange: resourceChange,
  Entry: entry,
  Verify: shape({ differences: z.array(difference).readonly() }),
  Status: status,
  Question: shape({
    endpoint: text,
    ask: optional,
    server: optional,
    protocol: optional,
    name: optional,
    address: optional,
    port: optional,
  }),
  OwnQuestion: shape({ endpoint: text, query: text, protocol: optional, server: optional }),
  OwnAnswer: shape({ answer: text.nullable() }),
  Explanation: explanation,
  Mode: shape({ mode: z.enum(['enforce', 'audit', 'bypass', 'pinned']) }),
  Audit: shape({
    scope: z.enum(['node', 'endpoint', 'selector', 'all']),
    on: flag.nullable(),
    name: optional,
    matchLabels: mapping.exactOptional(),
  }),
} as const

export type EndpointShape = z.infer<typeof endpoint>
export type ResourceShape = z.infer<typeof resource>
export type ResourceChangeShape = z.infer<typeof resourceChange>
export type PolicyShape = z.infer<typeof policy>
export type SelectorShape = z.infer<typeof selector>
export type NameShape = z.infer<typeof name>
export type IpcacheShape = z.infer<typeof prefix>
export type IdentityShape = z.infer<typeof identity>
/** One entry that is enforced now. */
export type DatapathShape = z.infer<typeof entry>
export type DifferenceShape = z.infer<typeof difference>
export type StatusShape = z.infer<typeof status>
