// An example of each body of the admin API, for the OpenAPI document and docs/api.md. Their types are those of the schemas.

import type { z } from 'zod'
import type { SCHEMAS } from './shapes.ts'

type Schemas = typeof SCHEMAS
type Examples = { readonly [Name in keyof Schemas]?: z.input<Schemas[Name]> }

const TIME = '2026-11-23T08:15:30.123Z'
const LATER = '2026-11-23T20:15:30.123Z'
const RULE = { policy: 'default/shop', file: '/etc/namegate/policies/shop.yaml', line: 5 } as const

const DENIED = {
  kind: 'denied',
  verdict: 'deny',
  endpoint: 'shop-1',
  endpointLabels: ['k8s:app=shop'],
  client: '10.0.1.7',
  name: 'www.example.org',
  type: 'A',
  rcode: null,
  outcome: null,
  addresses: 0,
  reason: null,
  rules: [RULE],
} as const

const STATUS: Examples['Status'] = {
  health: 'ok',
  ready: true,
  notReady: [],
  version: '0.1.0',
  config: '/etc/namegate/namegate.yaml',
  started: TIME,
  pid: 812,
  mode: 'enforce',
  datapath: {
    kind: 'ebpf',
    revision: 12,
    desiredRevision: 12,
    refused: 0,
    stalled: false,
    held: 0,
    repaired: 0,
  },
  policyRevision: 3,
  realizedRevision: 3,
  endpoints: { known: 2, enforcing: 1 },
  policies: 1,
  listeners: ['0.0.0.0:10053 (tproxy)'],
  interception: 'in force',
  intercepting: true,
  upstreams: [
    { address: '9.9.9.9:53', answered: true, state: 'up', first: true, rttMs: 8.2, failures: 0 },
  ],
  kept: { generation: 4, image: 20_480, journal: 512, age: 3, faults: 0 },
  restart: null,
  identityFallbacks: 0,
  kubernetes: null,
  audited: { on: false, queries: 0, packets: 0, endpoints: [] },
  limits: [],
  faults: [],
  warnings: [],
}

const TOP: Examples['Top'] = {
  time: TIME,
  seconds: 60,
  flows: 130,
  verdicts: { allow: 128, deny: 2, audit: 0, error: 0, event: 0 },
  names: [{ name: 'www.example.com', flows: 128, refused: 0 }],
  endpoints: [{ endpoint: 'shop-1', flows: 130, refused: 2 }],
  refusals: [
    {
      count: 2,
      last: TIME,
      endpoint: 'shop-1',
      what: 'A www.example.org',
      names: [],
      reason: null,
      rules: [RULE],
    },
  ],
}

const EXPLANATION: Examples['Explanation'] = {
  verdict: 'deny',
  reason: 'www.example.org may not be asked: no rules.dns for UDP matches it',
  rules: [],
  selectors: [],
  identities: [],
  labels: [],
  default: { egress: 'deny', policies: ['default/shop'], audited: [] },
  nearest: null,
  add: null,
  notes: [],
}

const CHANGED = { name: 'vm-8', changed: true, revision: 13, refused: 0 } as const

/** By the names of the schemas. */
export const EXAMPLES: Examples = {
  Endpoint: {
    id: 1,
    name: 'shop-1',
    origin: '/etc/namegate/endpoints.yaml',
    addresses: ['10.0.1.7'],
    labels: ['k8s:app=shop'],
    enforcing: true,
    reason: '',
    audit: false,
    policies: ['default/shop'],
    policyRevision: 3,
    realizedRevision: 3,
    adoptedFlows: 0,
  },
  Policy: {
    name: 'shop',
    namespace: 'default',
    kind: 'CiliumNetworkPolicy',
    file: RULE.file,
    endpoints: 1,
    selectors: ['*.example.com'],
    unseen: [],
    audited: false,
    state: 'in-force',
    error: null,
  },
  Selector: {
    selector: '*.example.com',
    kind: 'fqdn',
    identities: [16_777_216],
    names: 1,
    seen: true,
    policies: ['default/shop'],
  },
  Name: {
    name: 'www.example.com',
    endpoint: 'shop-1',
    selectors: ['*.example.com'],
    addresses: [{ address: '198.51.100.8', expires: LATER, state: 'live' }],
  },
  Prefix: {
    prefix: '198.51.100.8/32',
    identity: 16_777_216,
    labels: ['fqdn:*.example.com', 'reserved:world', 'reserved:world-ipv4'],
    owners: [{ kind: 'name', name: 'www.example.com', labels: ['fqdn:*.example.com'] }],
  },
  Identity: {
    id: 16_777_216,
    labels: ['fqdn:*.example.com', 'reserved:world', 'reserved:world-ipv4'],
    references: 1,
    preallocated: false,
  },
  Resource: {
    name: 'vm-8',
    addresses: ['198.51.100.9'],
    labels: ['external:app=db'],
    origin: 'api',
    expires: LATER,
  },
  ResourceChange: { ...CHANGED, expires: LATER },
  Entry: { map: 'ng_endpoints', key: 'lxc1', value: 'endpoint 1 generation 1 enforcing' },
  Verify: { differences: [] },
  Status: STATUS,
  Top: TOP,
  OwnAnswer: { answer: 'EjSBgAABAAEAAAAAA3d3dwdleGFtcGxlA2NvbQAAAQABwAwAAQABAAABLAAExjNkCA==' },
  Explanation: EXPLANATION,
  AuditResult: { on: true, mode: 'enforce', endpoints: ['shop-1'] },
  ModeResult: { mode: 'audit' },
  Source: {
    origin: 'kubernetes',
    kind: 'CiliumNetworkPolicy',
    state: 'watching',
    objects: 12,
    faulty: 0,
    held: 0,
    age: 4,
    reason: '',
  },
  Placed: { endpoint: 'shop/web-0', enforced: true },
  Displaced: { endpoint: 'shop/web-0' },
  Accepted: { removed: 3 },
  Detached: { detached: true },
  ResourceBody: { addresses: ['198.51.100.9'], labels: { app: 'db' }, ttl: '12h' },
  Question: { endpoint: 'shop-1', ask: 'www.example.org' },
  OwnQuestion: { endpoint: 'shop-1', query: 'EjQBAAABAAAAAAAAA3d3dwdleGFtcGxlA2NvbQAAAQAB' },
  Mode: { mode: 'audit' },
  Place: {
    namespace: 'shop',
    name: 'web-0',
    uid: '9c0de7a1-7b3c-4d52-9f1e-2b7c11d0a001',
    interface: 'veth1a2b3c',
    addresses: ['10.0.1.7'],
  },
  Displace: { namespace: 'shop', name: 'web-0', uid: '9c0de7a1-7b3c-4d52-9f1e-2b7c11d0a001' },
  Audit: { scope: 'endpoint', name: 'shop-1', on: true },
  Flow: { number: 4211, time: TIME, ...DENIED },
  KeptFlow: { time: TIME, last: LATER, count: 12, node: 'node-1', ...DENIED },
}
