// The larger sections of the configuration file, with default, unit and text of each key. schema.ts adds the small sections.

import { z } from 'zod'
import { LIMITS, type Limit } from '../core/limits.ts'
import { formatDuration, LONGEST_MS } from '../core/quantity.ts'
import { DEFAULT_IDENTITY_LABELS } from '../policy/identity-labels.ts'
import { DEFAULT_PIN_PATH } from '../core/pin-path.ts'
import {
  addressItem,
  duration,
  flag,
  group,
  integer,
  list,
  oneOf,
  prefixItem,
  pinPath,
  words,
} from './schema-values.ts'

/** The meaning of relative paths in the file. */
export const RELATIVE = 'relative to the folder of this file'

const TTL = { max: LONGEST_MS } as const

const labelMap = z.record(z.string(), z.string({ error: 'a text' }))

const expression = z.strictObject({
  key: words('label key').meta({ description: 'Key of the label.' }),
  operator: z
    .enum(['In', 'NotIn', 'Exists', 'DoesNotExist'], {
      error: 'In, NotIn, Exists or DoesNotExist',
    })
    .meta({ description: 'What must hold: In, NotIn, Exists or DoesNotExist.' }),
  values: z
    .array(z.string({ error: 'a text' }))
    .prefault([])
    .meta({ description: 'Values for In and NotIn (default []).' }),
})

export const selector = group('Labels of endpoints', {
  matchLabels: labelMap
    .prefault({})
    .meta({ description: 'Each of these labels must be there (default {}).' }),
  matchExpressions: list(expression, {
    default: [],
    doc: 'conditions on labels, each of which must hold',
    unit: 'list of { key, operator, values }',
  }),
})

export const listener = group('Where queries are taken, UDP and TCP both', {
  address: addressItem()
    .optional()
    .meta({ description: 'Address to listen on (default: all addresses, both families).' }),
  port: integer({
    default: 5300,
    min: 0,
    max: 65_535,
    unit: 'port, 0 takes a free one',
    doc: 'port',
  }),
  mode: oneOf(['explicit', 'tproxy', 'redirect'], {
    default: 'explicit',
    doc: 'how queries come in: clients name us as their resolver, or are redirected',
  }),
  interfaces: list(words('interface name'), {
    default: [],
    doc: 'interfaces to intercept on (tproxy); empty = those of the endpoints',
    unit: 'interface names, or their beginnings such as lxc*',
  }),
})

export const intercept = group('Redirect rules of the transparent modes', {
  'on-start': flag({ default: false, doc: 'install the rules at start' }),
  'on-exit': oneOf(['closed', 'open'], {
    default: 'closed',
    doc: 'DNS of intercepted clients after an orderly stop',
  }),
  mark: integer({
    default: 0x4e47,
    min: 1,
    max: 0xffff_ffff,
    unit: 'number',
    doc: 'mark of the packets that namegate itself sends',
  }),
  table: integer({
    default: 20_039,
    min: 1,
    max: 0x7fff_ffff,
    unit: 'number',
    doc: 'routing table for TPROXY',
  }),
})

export const upstreams = group('Servers that queries go to', {
  servers: list(words('text: system or ADDRESS:PORT'), {
    default: ['system'],
    min: 1,
    doc: 'servers in order of preference; system = resolv.conf',
    unit: 'system or ADDRESS:PORT, such as 9.9.9.9:53 or [2620:fe::fe]:53',
  }),
  'original-destination': flag({
    default: false,
    doc: 'transparent modes: forward to the server the client asked',
  }),
  trusted: list(prefixItem(), {
    default: [],
    doc: 'servers that may teach addresses; empty = the servers above',
    unit: 'prefixes',
  }),
  untrusted: oneOf(['refuse', 'pass'], {
    default: 'refuse',
    doc: 'queries to other servers: refused, or forwarded and nothing learned',
  }),
  timeout: duration({
    default: '4s',
    min: 10,
    max: 60_000,
    doc: 'for the whole query, all attempts',
  }),
  attempts: integer({
    default: 3,
    min: 1,
    max: 16,
    unit: 'attempts per query',
    doc: 'attempts, over 2 servers or more where there are',
  }),
})

export const policies = group('Where policy comes from', {
  paths: list(words('path'), {
    default: ['policies'],
    doc: 'files or directories with policies',
    unit: `paths, ${RELATIVE}`,
  }),
  watch: flag({ default: true, doc: 'read a changed file again' }),
  'allow-list-endpoints': labelMap.prefault({}).meta({
    description: 'Labels of the endpoints that *.allow files apply to; empty = all (default {}).',
  }),
  ingress: oneOf(['error', 'ignore'], {
    default: 'error',
    doc: 'policies that have an ingress half: refused, or their egress half alone is loaded',
  }),
  'unsupported-fields': oneOf(['error', 'warn'], {
    default: 'error',
    doc: 'fields of policies that are known but not supported; with warn what they stand in allows nothing',
  }),
  'cidr-matches-endpoints': flag({
    default: false,
    doc: 'CIDR rules also select known endpoints, resources and the node',
  }),
})

export const endpoints = group('Workloads that policy applies to', {
  files: list(words('path'), {
    default: ['endpoints.yaml'],
    doc: 'endpoints files',
    unit: `paths, ${RELATIVE}`,
  }),
  'identity-labels': list(words('label key, with ! in front to leave it out'), {
    default: [...DEFAULT_IDENTITY_LABELS],
    doc: 'labels that make identities, and that policies see; keys without ! are the only ones kept',
    unit: 'label keys, or their beginnings such as team.*',
  }),
})

export const dns = group('What is answered', {
  'deny-response': oneOf(['refused', 'nxdomain', 'nodata', 'drop'], {
    default: 'refused',
    doc: 'answer to a name that policy denies',
  }),
  'without-rules': oneOf(['allow', 'deny'], {
    default: 'allow',
    doc: 'questions of endpoints that have no DNS rules',
  }),
  hold: group('Answers that wait for the datapath', {
    limit: duration({ default: '100ms', min: 1, max: 60_000, doc: 'longest hold of one answer' }),
    'on-limit': oneOf(['servfail', 'drop', 'release'], {
      default: 'servfail',
      doc: 'what happens to an answer that is held out',
    }),
  }).prefault({}),
  'on-degraded': oneOf(['release', 'servfail', 'strip-addresses'], {
    default: 'release',
    doc: 'answers some of whose addresses got fewer labels or none: strip-addresses takes these out of the message',
  }),
  'min-ttl': duration({ ...TTL, default: '0s', doc: 'shortest time an address counts as live' }),
  'max-ttl': duration({ ...TTL, default: '24h', doc: 'longest time an address counts as live' }),
  'grace-after-ttl': duration({
    ...TTL,
    default: '60s',
    doc: 'how long an address stays allowed after its TTL',
  }),
  'tcp-idle': duration({
    default: '6h',
    min: 1000,
    doc: 'an idle TCP connection counts as open for so long',
  }),
  'udp-idle': duration({
    default: '3m',
    min: 1000,
    doc: 'an idle UDP or QUIC flow counts as open for so long; with nftables no longer than the kernel keeps it',
  }),
  'cname-match': oneOf(['question', 'chain'], {
    default: 'question',
    doc: 'which names of an answer selectors are matched with: the name asked alone, or those that its CNAMEs lead to as well',
  }),
  svcb: oneOf(['learn', 'strip', 'pass'], {
    default: 'learn',
    doc: 'address hints in SVCB and HTTPS records: learn teaches them as A and AAAA are, strip takes them out of the message, pass passes them unlearned',
  }),
  guard: oneOf(['pass', 'strip'], {
    default: 'pass',
    doc: 'guarded addresses in answers: strip takes them out of the message; they never get labels either way',
  }),
  'protected-prefixes': list(prefixItem(), {
    default: [],
    doc: 'addresses that never get labels from answers, besides loopback, link-local, multicast and our own',
    unit: 'prefixes',
  }),
  'guard-private': flag({
    default: false,
    doc: 'protects every private range as protected-prefixes does: 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 100.64.0.0/10, fc00::/7',
  }),
  prewarm: flag({
    default: false,
    doc: 'ask the exact names of policies before the first query',
  }),
})

export const datapath = group('What enforces', {
  kind: oneOf(['memory', 'ebpf', 'nftables'], {
    default: 'memory',
    doc: 'memory enforces nothing, it shows what would be',
  }),
  ebpf: group('The eBPF datapath', {
    'pin-path': pinPath({
      default: DEFAULT_PIN_PATH,
      doc: 'folder of bpffs for the pinned maps',
      unit: `path without a dot, ${RELATIVE}`,
    }),
  }).prefault({}),
  verify: duration({
    default: '1m',
    doc: "time between two comparisons of the kernel's maps with the wanted entries; differences are repaired",
  }),
  'adopt-existing': duration({
    default: '10m',
    doc: 'flows open before an endpoint was first enforced pass for so long',
  }),
})

/** A bound of core/limits.ts as a key under `limits`. */
function bound(limit: Limit) {
  const { min, max, built } = limit
  const doc = `${limit.doc}; at the bound: ${limit.atBound}`
  return limit.unit === 'ms'
    ? duration({ default: formatDuration(limit.default), min, max, doc, built })
    : integer({ default: limit.default, min, max, doc, built, unit: limit.unit })
}

export const limits = z.strictObject(
  Object.fromEntries(Object.entries(LIMITS).map(([key, limit]) => [key, bound(limit)])),
)
