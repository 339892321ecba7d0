// The OpenAPI document of the admin API, made from one table, so that a path and what it is about stand once.

interface PathText {
  readonly summary: string
  /** Schema of a 200's body: a name under `components`, as a list or alone. */
  readonly list?: string
  readonly one?: string
  readonly body?: string
}

const READ: Readonly<Record<string, PathText>> = {
  '/v1/endpoints': { summary: 'Workloads that policy applies to', list: 'Endpoint' },
  '/v1/policies': { summary: 'Policies with the state of their files', list: 'Policy' },
  '/v1/selectors': { summary: 'Selectors in use and what they select', list: 'Selector' },
  '/v1/names': { summary: 'Names that answers taught, by endpoint', list: 'Name' },
  '/v1/ipcache': { summary: 'Prefixes, their identities, labels and owners', list: 'Prefix' },
  '/v1/identities': { summary: 'Identities in use', list: 'Identity' },
  '/v1/resources': { summary: 'External resources', list: 'Resource' },
  '/v1/datapath': { summary: 'Entries that are enforced now', list: 'Entry' },
  '/v1/status': {
    summary:
      'State of the daemon; realized= waits until that policy revision (a number, or wanted) is, timeout= milliseconds',
    one: 'Status',
  },
  '/v1/verify': { summary: 'Desired state against the datapath', one: 'Verify' },
  '/v1/flows': {
    summary:
      'JSON lines; follow=1 goes on, verdict= takes a verdict or kind, last= so many of the latest',
  },
  '/v1/flows/kept': {
    summary:
      'JSON lines kept on disk, oldest first: flows of a kind with count, time of the first and last; older=1: only those that began before those of /v1/flows',
  },
  '/v1/openapi.json': { summary: 'This document' },
}

const CHANGE: Readonly<Record<string, PathText>> = {
  '/v1/audit': { summary: 'Turns audit on or off', body: 'Audit' },
  '/v1/mode': { summary: 'Sets the mode of the datapath', body: 'Mode' },
  '/v1/explain': {
    summary: 'Why an endpoint may or may not ask a name, or connect',
    body: 'Question',
    one: 'Explanation',
  },
  '/v1/ask': {
    summary: 'A DNS query in the name of an endpoint; what the answer teaches is learned',
    body: 'OwnQuestion',
    one: 'OwnAnswer',
  },
  '/v1/detach': { summary: 'Takes all enforcement away and ends the daemon' },
}

/** Paths with a name in them. */
const NAMED: Readonly<Record<string, Readonly<Record<'put' | 'delete', PathText>>>> = {
  '/v1/resources/{name}': {
    put: {
      summary: 'Adds an external resource or changes it; answers when it is in force and kept',
      body: 'ResourceBody',
      one: 'ResourceChange',
    },
    delete: { summary: 'Takes it away again', one: 'ResourceChange' },
  },
}

const TEXT = { type: 'string' }
const NUMBER = { type: 'integer' }
const FLAG = { type: 'boolean' }
const TEXTS = { type: 'array', items: TEXT }
const TEXT_OR_NULL = { type: ['string', 'null'] }
const TIME = { type: 'string', format: 'date-time' }
const TIME_OR_NULL = { type: ['string', 'null'], format: 'date-time' }
const MAPPING = { type: 'object', additionalProperties: TEXT }

const SCHEMAS = {
  Endpoint: fields({
    id: NUMBER,
    name: TEXT,
    addresses: TEXTS,
    labels: TEXTS,
    enforcing: FLAG,
    reason: TEXT,
    audit: FLAG,
    policies: TEXTS,
    policyRevision: NUMBER,
    realizedRevision: NUMBER,
    adoptedFlows: NUMBER,
  }),
  Policy: fields({
    name: TEXT,
    namespace: TEXT_OR_NULL,
    kind: TEXT_OR_NULL,
    file: TEXT,
    endpoints: NUMBER,
    selectors: TEXTS,
    unseen: TEXTS,
    audited: FLAG,
    state: oneOf('in-force', 'last-good', 'rejected'),
    error: TEXT_OR_NULL,
  }),
  Selector: fields({
    selector: TEXT,
    kind: oneOf('fqdn', 'cidr', 'endpoints', 'named'),
    identities: { type: 'array', items: NUMBER },
    names: NUMBER,
    seen: { type: ['boolean', 'null'] },
    policies: TEXTS,
  }),
  Name: fields({
    name: TEXT,
    endpoint: TEXT,
    selectors: TEXTS,
    addresses: listOf({ address: TEXT, expires: TIME, state: oneOf('live', 'grace', 'connected') }),
  }),
  Prefix: fields(
    {
      prefix: TEXT,
      identity: NUMBER,
      labels: TEXTS,
      owners: listOf({ kind: TEXT, name: TEXT, labels: TEXTS }),
    },
    { endpoint: TEXT },
  ),
  Identity: fields({ id: NUMBER, labels: TEXTS, references: NUMBER, preallocated: FLAG }),
  Resource: fields({
    name: TEXT,
    addresses: TEXTS,
    labels: TEXTS,
    origin: oneOf('file', 'api'),
    expires: TIME_OR_NULL,
  }),
  ResourceBody: fields({ addresses: TEXTS }, { labels: MAPPING, ports: MAPPING, ttl: TEXT }),
  ResourceChange: fields({
    name: TEXT,
    changed: FLAG,
    expires: TIME_OR_NULL,
    revision: NUMBER,
    refused: NUMBER,
  }),
  Entry: fields({ map: TEXT, key: TEXT, value: TEXT }),
  Verify: fields({
    differences: listOf({ map: TEXT, key: TEXT, want: TEXT_OR_NULL, have: TEXT_OR_NULL }),
  }),
  Status: fields({
    health: oneOf('ok', 'degraded'),
    ready: FLAG,
    notReady: TEXTS,
    version: TEXT,
    started: TIME,
    pid: NUMBER,
    mode: oneOf('enforce', 'audit', 'bypass'),
    datapath: fields({
      kind: TEXT,
      revision: NUMBER,
      desiredRevision: NUMBER,
      refused: NUMBER,
      stalled: FLAG,
      held: NUMBER,
      repaired: NUMBER,
    }),
    policyRevision: NUMBER,
    realizedRevision: NUMBER,
    endpoints: fields({ known: NUMBER, enforcing: NUMBER }),
    policies: NUMBER,
    listeners: TEXTS,
    interception: TEXT_OR_NULL,
    upstreams: listOf({
      address: TEXT,
      answered: { type: ['boolean', 'null'] },
      state: { type: 'string', enum: ['up', 'failing', 'down'] },
      first: FLAG,
      rttMs: { type: ['number', 'null'] },
      failures: NUMBER,
    }),
    kept: {
      ...fields({
        generation: NUMBER,
        image: NUMBER,
        journal: NUMBER,
        age: NUMBER,
        faults: NUMBER,
      }),
      type: ['object', 'null'],
    },
    restart: {
      ...fields({
        phase: oneOf('pairs', 'claims', 'grace', 'leaving', 'done'),
        restored: NUMBER,
        left: NUMBER,
        claimed: NUMBER,
        kept: NUMBER,
      }),
      type: ['object', 'null'],
    },
    identityFallbacks: NUMBER,
    limits: listOf({ limit: TEXT, use: { type: ['number', 'null'] }, bound: NUMBER, hits: NUMBER }),
    faults: listOf({ file: TEXT, line: NUMBER, column: NUMBER, message: TEXT }),
    warnings: TEXTS,
  }),
  Question: fields(
    { endpoint: TEXT },
    { ask: TEXT, server: TEXT, protocol: TEXT, name: TEXT, address: TEXT, port: TEXT },
  ),
  OwnQuestion: fields({ endpoint: TEXT, query: TEXT }, { protocol: TEXT, server: TEXT }),
  OwnAnswer: fields({ answer: TEXT_OR_NULL }),
  Explanation: fields({
    verdict: oneOf('allow', 'deny', 'audit'),
    reason: TEXT,
    rules: listOf({ policy: TEXT, file: TEXT, line: NUMBER, action: oneOf('allow', 'deny') }),
    selectors: TEXTS,
    identities: { type: 'array', items: NUMBER },
    labels: TEXTS,
    default: fields({ egress: TEXT, policies: TEXTS, audited: TEXTS }),
    nearest: {
      anyOf: [fields({ policy: TEXT, file: TEXT, line: NUMBER, missing: TEXT }), { type: 'null' }],
    },
    notes: TEXTS,
  }),
  Mode: fields({ mode: oneOf('enforce', 'audit', 'bypass', 'pinned') }),
  Audit: {
    type: 'object',
    properties: {
      scope: oneOf('node', 'endpoint', 'selector', 'all'),
      on: { type: ['boolean', 'null'] },
      name: TEXT,
      matchLabels: MAPPING,
    },
    required: ['scope', 'on'],
  },
}

export function openApi(version: string): object {
  const paths = new Map<string, object>()
  for (const [path, text] of Object.entries(READ)) paths.set(path, { get: operation(text) })
  for (const [path, text] of Object.entries(CHANGE)) paths.set(path, { post: operation(text) })
  for (const [path, methods] of Object.entries(NAMED)) {
    const parameters = [{ name: 'name', in: 'path', required: true, schema: TEXT }]
    const put = operation(methods.put)
    paths.set(path, { parameters, put, delete: operation(methods.delete) })
  }
  return {
    openapi: '3.1.0',
    info: { title: 'namegate admin API', version },
    paths: Object.fromEntries(paths),
    components: { schemas: SCHEMAS },
  }
}

function operation({ summary, list, one, body }: PathText): object {
  const schema =
    list !== undefined ? { type: 'array', items: ref(list) } : one !== undefined ? ref(one) : {}
  const answer = { description: 'Done', content: { 'application/json': { schema } } }
  const request = { content: { 'application/json': { schema: ref(body ?? '') } } }
  return {
    summary,
    ...(body === undefined ? {} : { requestBody: request }),
    responses: { 200: answer },
  }
}

function ref(name: string): object {
  return { $ref: `#/components/schemas/${name}` }
}

/** An object that has all of these fields, and perhaps the optional ones. */
function fields(
  properties: Readonly<Record<string, object>>,
  optional: Readonly<Record<string, object>> = {},
): object {
  const all = { ...properties, ...optional }
  return { type: 'object', properties: all, required: Object.keys(properties) }
}

function listOf(properties: Readonly<Record<string, object>>): object {
  return { type: 'array', items: fields(properties) }
}

function oneOf(...values: readonly string[]): object {
  return { type: 'string', enum: values }
}
