// Defines the JSON that the admin API returns and `namegate get` prints (docs/spec/promises "Outside contracts"). The forms are fixed,
// because other programs read them. Times are RFC 3339 in UTC, addresses RFC 5952, and prefixes have a length. Names and selector texts are
// in lower case without final dot. The types of the views, of the CLI and of the library are inferred from these schemas, and openapi.ts
// makes the OpenAPI document from them. Only openapi.ts loads this file at run time; other files import types.

import { z } from 'zod'
import { cluster, CLUSTER_SCHEMAS } from './cluster-shapes.ts'
import { explanation } from './explain-shapes.ts'
import { FLOW_SCHEMAS } from './flow-shapes.ts'
import { REQUEST_SCHEMAS } from './request-shapes.ts'
import { flag, list, numbers, optional, shape, text, texts, time, whole } from './shape-parts.ts'
import { top } from './top-shapes.ts'

const mode = z.enum(['enforce', 'audit', 'bypass'])

const endpoint = shape({
  id: whole,
  name: text,
  origin: text.describe(
    'The path of the file that describes the endpoint, or the name of its object, such as `kubernetes:Pod/shop/web-0`',
  ),
  addresses: texts,
  labels: texts,
  enforcing: flag,
  reason: text.describe(
    'Why the endpoint is not enforced, and which setting of the endpoint, the node or a policy audits it. Empty if neither is the case',
  ),
  audit: flag,
  policies: texts,
  policyRevision: whole,
  realizedRevision: whole,
  adoptedFlows: whole.describe(
    'Connections that are older than the enforcement of the endpoint and are still allowed',
  ),
})

const resource = shape({
  name: text,
  addresses: texts,
  labels: texts,
  origin: z.enum(['file', 'api']),
  expires: time.nullable().describe('Null if the resource has no end'),
})

const resourceChange = shape({
  name: text,
  changed: flag.describe('False if the resource was the same before, except perhaps for its end'),
  expires: time.nullable().describe('Null if the resource has no end, or was removed'),
  revision: whole.describe('Revision of the datapath that contains the change'),
  refused: whole.describe('Entries that the datapath refuses at present'),
})

const policy = shape({
  name: text.describe('Empty for a rejected file, in which no policy could be read'),
  namespace: text.nullable().describe('Null for a clusterwide policy'),
  kind: text.nullable(),
  file: text,
  endpoints: whole.describe('How many endpoints the policy selects'),
  selectors: texts,
  unseen: texts.describe(
    'Selectors for names that have matched no answered name since they came into force',
  ),
  audited: flag.describe(
    'True if the annotation namegate.io/audit of the policy is set, so that the policy denies nothing',
  ),
  state: z.enum(['in-force', 'last-good', 'rejected']),
  error: text.nullable().describe('One line `file:line:column: message` per fault'),
})

const selector = shape({
  selector: text,
  kind: z
    .enum(['fqdn', 'cidr', 'endpoints', 'named'])
    .describe(
      '`named` selects, for each endpoint with `default-egress: allow-named`, what this endpoint learned',
    ),
  identities: numbers,
  names: whole.describe('How many known names the selector matches. 0 for a CIDR'),
  seen: flag
    .nullable()
    .describe(
      'True if the selector has matched an answered name since it came into force. Null if it is not for names',
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
    .describe(
      'The only endpoint for which this row applies. Absent if the row applies to the whole node',
    )
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
  want: text.nullable().describe('Null if the entry should not exist'),
  have: text.nullable().describe('Null if the entry does not exist'),
})

const status = shape({
  health: z.enum(['ok', 'degraded']),
  ready: flag,
  notReady: texts,
  version: text,
  config: text.nullable().describe('Path of the configuration file. Null without a file'),
  started: time,
  pid: whole,
  mode: mode,
  datapath: shape({
    kind: text,
    revision: whole.describe('The last revision that the datapath confirmed'),
    desiredRevision: whole.describe('The revision that will contain every change up to now'),
    refused: whole.describe('Entries that the datapath refuses at present'),
    stalled: flag.describe('True while a commit takes longer than a second'),
    held: whole.describe('Answers that are held until the datapath confirms their addresses'),
    repaired: whole.describe(
      'Entries that another program changed or deleted, and that namegate restored',
    ),
  }),
  policyRevision: whole,
  realizedRevision: whole,
  endpoints: shape({ known: whole, enforcing: whole }),
  policies: whole,
  listeners: texts.describe(
    'For example `127.0.0.1:53`, or `0.0.0.0:10053 (tproxy)` for a mode other than explicit',
  ),
  interception: text
    .nullable()
    .describe('For people. Null if no listener has the mode tproxy or redirect'),
  intercepting: flag
    .nullable()
    .describe(
      'True while the rules of interception are in force. Null if no listener has the mode tproxy or redirect',
    ),
  upstreams: list({
    address: text,
    answered: flag.nullable().describe('Null while the first answer can still come'),
    state: z.enum(['up', 'failing', 'down']),
    first: flag.describe('True if new queries ask this server first'),
    rttMs: z.number().nullable().describe('Null before the first answer of the server'),
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
    .describe('The state folder. Null if nothing is kept over restarts'),
  restart: shape({
    phase: z.enum(['pairs', 'claims', 'grace', 'leaving', 'done']),
    restored: whole,
    left: whole,
    claimed: whole,
    kept: whole,
  })
    .nullable()
    .describe(
      'Progress in restoring what the previous daemon knew and enforced. Null if nothing is kept over restarts',
    ),
  identityFallbacks: whole.describe(
    'How often a label set got a fallback identity with fewer fqdn labels',
  ),
  kubernetes: cluster.nullable().describe('Null without `kubernetes` in the configuration'),
  audited: shape({
    on: flag.describe('True while audit is set for the node, an endpoint or a policy'),
    queries: whole.describe('Queries that policy denied and audit let pass, since the start'),
    packets: whole.describe(
      'Packets that policy denied and audit let pass, since the start. The datapath reports a limited number in a second',
    ),
    endpoints: list({ name: text, queries: whole, packets: whole }).describe(
      'The ten endpoints with the most',
    ),
  }),
  limits: list({
    limit: text,
    use: z.number().nullable().describe('Null if only the hits are known'),
    bound: whole,
    hits: whole,
  }).describe('Bounds of which at least 80 % are in use, and bounds that were hit since the start'),
  faults: list({ file: text, line: whole, column: whole, message: text }),
  warnings: texts,
  waitedFor: whole
    .describe('The policy revision for which the answer waited. Absent without `realized=`')
    .exactOptional(),
})

const verify = shape({ differences: z.array(difference).readonly() })

const auditResult = shape({
  on: flag.nullable().describe('Null if the setting was reset'),
  mode: mode,
  endpoints: texts.describe('Known endpoints to which the setting applies'),
})

const ownAnswer = shape({ answer: text.nullable() })

const problem = shape({
  type: text.describe('`urn:namegate:problem:` and a word, for programs'),
  title: text.describe('What the type means'),
  status: whole.describe('The HTTP status'),
  detail: text.describe('What happened this time'),
  instance: text.describe('The path of the request'),
  faults: list({
    message: text,
    file: optional,
    line: whole.exactOptional(),
    column: whole.exactOptional(),
  })
    .describe(
      'Each fault of the input. `file`, `line` and `column` are present for faults of files',
    )
    .exactOptional(),
  error: text.describe('The same text as `detail`'),
})

/** The schemas of bodies, by their names in the OpenAPI document. */
export const SCHEMAS = {
  Endpoint: endpoint,
  Policy: policy,
  Selector: selector,
  Name: name,
  Prefix: prefix,
  Identity: identity,
  Resource: resource,
  ResourceChange: resourceChange,
  Entry: entry,
  Verify: verify,
  Status: status,
  Top: top,
  OwnAnswer: ownAnswer,
  Explanation: explanation,
  AuditResult: auditResult,
  ModeResult: shape({ mode }),
  ...CLUSTER_SCHEMAS,
  Detached: shape({ detached: z.literal(true) }),
  Problem: problem,
  ...REQUEST_SCHEMAS,
  ...FLOW_SCHEMAS,
} as const

export type EndpointShape = z.infer<typeof endpoint>
export type ResourceShape = z.infer<typeof resource>
export type ResourceChangeShape = z.infer<typeof resourceChange>
export type PolicyShape = z.infer<typeof policy>
export type SelectorShape = z.infer<typeof selector>
export type NameShape = z.infer<typeof name>
export type IpcacheShape = z.infer<typeof prefix>
export type IdentityShape = z.infer<typeof identity>
/** One entry that the datapath enforces now. */
export type DatapathShape = z.infer<typeof entry>
export type DifferenceShape = z.infer<typeof difference>
export type AuditResultShape = z.infer<typeof auditResult>
export type ProblemShape = z.infer<typeof problem>
export type StatusShape = z.infer<typeof status>
