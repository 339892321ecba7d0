// Describes every key of the configuration file: words, defaults, units, bounds, and the field of Config that the key becomes. The types of
// config.ts are inferred from this schema. `npm run reference` makes the library's types and docs/reference from it, and a test compares
// exec's configuration (exec-config.ts) with it.

import type { z } from 'zod'
import { clients, dns, intercept, listener, upstreams } from './schema-dns.ts'
import { kubernetes } from './schema-kubernetes.ts'
import { page } from './schema-page.ts'
import { datapath, endpoints, limits, policies, RELATIVE, selector } from './schema-policy.ts'
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
  section,
  size,
  text,
  words,
} from './schema-values.ts'

/** The schema of the whole file. */
export const configSchema = section(
  'namegate configuration',
  {
    listeners: list(listener, {
      default: [{ address: '127.0.0.1', port: 5300, mode: 'explicit' }],
      min: 1,
      doc: 'addresses and ports that receive queries',
      unit: 'list',
    }),
    intercept: intercept.prefault({}),
    upstreams: upstreams.prefault({}),
    policies: policies.prefault({}),
    endpoints: endpoints.prefault({}),
    'cluster-name': text({
      default: 'default',
      doc: 'cluster of endpoints without the label k8s:io.cilium.k8s.policy.cluster',
      unit: 'name of at most 32 lower-case letters, digits and -',
      pattern: /^[a-z0-9](?:[-a-z0-9]{0,30}[a-z0-9])?$/,
    }),
    resources: group('Addresses with labels that no endpoint has', {
      files: list(words('path'), {
        default: [],
        doc: 'files of external resources',
        unit: `paths, ${RELATIVE}`,
      }),
    }).prefault({}),
    kubernetes: kubernetes.optional(),
    'unknown-clients': clients.prefault({}),
    'default-egress': oneOf(DEFAULT_EGRESS, {
      default: 'allow',
      doc: 'what an endpoint can reach if no policy turns default deny on for it',
    }),
    audit: group('Audit, which allows and reports what policy denies', {
      node: flag({ default: false, doc: 'true audits every endpoint' }),
      endpoints: list(selector, {
        default: [],
        doc: 'endpoints to audit: those that at least one item selects',
        unit: 'list',
      }),
    }).prefault({}),
    learning: oneOf(['node', 'endpoint'], {
      default: 'node',
      doc: 'who knows an address that one endpoint learned: node = all endpoints of the node, each with its own policy; endpoint = that endpoint alone',
    }),
    datapath: datapath.prefault({}),
    state: section(
      'State that is kept over restarts',
      {
        directory: text({
          default: 'var/state',
          doc: 'state folder',
          unit: `path, ${RELATIVE}`,
        }),
        'restore-grace': duration({
          default: '10m',
          doc: 'time after a start in which addresses and identities from before the start stay reserved',
        }),
      },
      (keys) => ({ directory: keys.directory, restoreGraceMs: keys['restore-grace'] }),
    ).prefault({}),
    sources: section(
      'Sources of policies and endpoints that cannot be read any more',
      {
        'max-age': duration({
          default: '24h',
          doc: 'time without a successful read of all paths of policies, of all paths of endpoints, or of all collections of the cluster, after which sources.then applies',
        }),
        // oxlint-disable-next-line unicorn/no-thenable -- a key of the file; a schema is never awaited
        then: oneOf(['keep', 'audit', 'deny'], {
          default: 'keep',
          doc: 'what happens until they can be read again: keep changes nothing; audit audits the node; deny refuses every query, and learned addresses stay allowed until they expire',
        }),
      },
      (keys) => ({ maxAgeMs: keys['max-age'], onMaxAge: keys.then }),
    ).prefault({}),
    flows: section(
      'Flows that are kept on disk',
      {
        keep: duration({ default: '7d', min: 60_000, doc: 'age after which flows are removed' }),
        'max-size': size({
          default: '256MiB',
          min: '1MiB',
          doc: 'total size above which the oldest flows are removed, at least 1MiB',
        }),
        output: list(oneOf(['file', 'stdout', 'syslog'], { default: 'file', doc: 'one output' }), {
          default: ['file'],
          doc: 'outputs of flows; file = the folder flows in the state folder',
          unit: 'list of file, stdout and syslog; an empty list writes no flows',
        }),
      },
      (keys) => ({
        keepMs: keys.keep,
        maxOctets: keys['max-size'],
        outputs: [...new Set(keys.output)],
      }),
    ).prefault({}),
    admin: group('The admin API', {
      socket: text({
        default: 'var/run/admin.sock',
        doc: 'path of the UNIX socket',
        unit: `path of at most ${SOCKET_PATH_MAX} octets, ${RELATIVE}`,
      }),
      page: page.optional(),
    }).prefault({}),
    metrics: group('Metrics and health', {
      address: address({ default: '127.0.0.1', doc: 'address to listen on' }),
      port: integer({
        default: 9465,
        min: 0,
        max: 65_535,
        unit: 'port, 0 takes a free one',
        doc: 'port to listen on',
      }),
    }).prefault({}),
    dns: dns.prefault({}),
    limits: limits.prefault({}),
    log: group('Logs of the daemon', {
      level: oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal'], {
        default: 'info',
        doc: 'lowest level that is logged',
      }),
      format: oneOf(['pretty', 'json'], {
        default: 'pretty',
        doc: 'format of log lines: pretty for people, json for machines',
      }),
    }).prefault({}),
  },
  ({
    'cluster-name': clusterName,
    'unknown-clients': unknownClients,
    'default-egress': defaultEgress,
    ...others
  }) => ({ ...others, clusterName, unknownClients, defaultEgress }),
)

/** The values of a file without faults, with defaults. Paths are as the file has them; placed.ts resolves them. */
export type ConfigValues = z.output<typeof configSchema>
