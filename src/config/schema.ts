// Every key of the configuration file: the one description of keys, words, defaults and bounds. The types of config.ts take their
// words from here, `npm run reference` makes the library's types and docs/reference from here, and a test compares exec's
// configuration (exec-config.ts). A key of a feature that is not built accepts its default alone.

import type { z } from 'zod'
import {
  datapath,
  dns,
  endpoints,
  intercept,
  limits,
  listener,
  policies,
  RELATIVE,
  selector,
  upstreams,
} from './schema-sections.ts'
import { SOCKET_PATH_MAX } from '../core/socket-address.ts'
import { DEFAULT_EGRESS } from '../policy/compile/default-egress.ts'
import {
  address,
  duration,
  flag,
  group,
  integer,
  list,
  oneOf,
  size,
  text,
  words,
} from './schema-values.ts'

/** The whole file. */
export const configSchema = group('namegate configuration', {
  listeners: list(listener, {
    default: [{ address: '127.0.0.1', port: 5300, mode: 'explicit' }],
    min: 1,
    doc: 'where queries are taken',
    unit: 'list',
  }),
  intercept: intercept.prefault({}),
  upstreams: upstreams.prefault({}),
  policies: policies.prefault({}),
  endpoints: endpoints.prefault({}),
  'cluster-name': text({
    default: 'default',
    doc: 'cluster of endpoints whose labels name none, as the label k8s:io.cilium.k8s.policy.cluster',
    unit: 'name of at most 32 lower-case letters, digits and -',
    pattern: /^[a-z0-9](?:[-a-z0-9]{0,30}[a-z0-9])?$/,
  }),
  resources: group('Addresses with labels and no client on them', {
    files: list(words('path'), { default: [], doc: 'resources files', unit: `paths, ${RELATIVE}` }),
  }).prefault({}),
  'unknown-clients': group('Clients that are no known endpoint', {
    wait: duration({
      default: '2s',
      doc: 'how long their queries wait for an endpoint to appear',
    }),
    // oxlint-disable-next-line unicorn/no-thenable -- a key of the file; a schema is never awaited
    then: oneOf(['refuse', 'allow-unmanaged'], {
      default: 'refuse',
      doc: 'what happens then',
    }),
  }).prefault({}),
  'default-egress': oneOf(DEFAULT_EGRESS, {
    default: 'allow',
    doc: 'what endpoints may do that no policy puts into default deny',
  }),
  audit: group('Let pass and report what would be denied', {
    node: flag({ default: false, doc: 'every endpoint' }),
    endpoints: list(selector, {
      default: [],
      doc: 'endpoints that any of these selects',
      unit: 'list',
    }),
  }).prefault({}),
  learning: oneOf(['node', 'endpoint'], {
    default: 'node',
    doc: 'whom an address that one endpoint learned is known to',
  }),
  datapath: datapath.prefault({}),
  state: group('What outlives the process', {
    directory: text({
      default: 'var/state',
      doc: 'folder of the state',
      unit: `path, ${RELATIVE}`,
    }),
    'restore-grace': duration({
      default: '10m',
      doc: 'time after which restored entries go that no source has claimed',
    }),
  }).prefault({}),
  sources: group('Policy and endpoint sources that fall silent', {
    'max-age': duration({
      default: '24h',
      doc: 'not one look at all paths of policies, or of endpoints, succeeded for so long',
    }),
    // oxlint-disable-next-line unicorn/no-thenable -- a key of the file; a schema is never awaited
    then: oneOf(['keep', 'audit', 'deny'], {
      default: 'keep',
      doc: 'then: keep what is in force; audit the node; or deny every name that is asked, what is known stays',
    }),
  }).prefault({}),
  flows: group('Decisions and drops kept on disk', {
    keep: duration({ default: '7d', min: 60_000, doc: 'age at which they go' }),
    'max-size': size({
      default: '256MiB',
      doc: 'size of all at which the oldest go, at least 1MiB',
    }),
    output: list(oneOf(['file', 'stdout', 'syslog'], { default: 'file', doc: 'one place' }), {
      default: ['file'],
      doc: 'where they go: file is the folder flows in that of the state',
      unit: 'list of file, stdout and syslog, empty for nowhere',
    }),
  }).prefault({}),
  admin: group('The admin API', {
    socket: text({
      default: 'var/run/admin.sock',
      doc: 'UNIX socket',
      unit: `path of at most ${SOCKET_PATH_MAX} octets, ${RELATIVE}`,
    }),
  }).prefault({}),
  metrics: group('Metrics and health', {
    address: address({ default: '127.0.0.1', doc: 'address to listen on' }),
    port: integer({
      default: 9465,
      min: 0,
      max: 65_535,
      unit: 'port, 0 takes a free one',
      doc: 'port',
    }),
  }).prefault({}),
  dns: dns.prefault({}),
  limits: limits.meta({ description: 'Bounds.' }).prefault({}),
  log: group('Logs of the daemon', {
    level: oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal'], {
      default: 'info',
      doc: 'least level that is written',
    }),
    format: oneOf(['pretty', 'json'], { default: 'pretty', doc: 'for people or for machines' }),
  }).prefault({}),
})

/** The keys of a file without faults, defaults included. */
export type ConfigKeys = z.output<typeof configSchema>
