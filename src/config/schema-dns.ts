// Defines the sections of the configuration file about queries, servers and answers: their keys with default, unit and text, and the fields
// of Config that the keys become.

import { z } from 'zod'
import { LONGEST_MS } from '../core/quantity.ts'
import {
  parseSocketAddress,
  SOCKET_ADDRESS_FORM,
  type SocketAddress,
} from '../core/socket-address.ts'
import { PRIVATE_PREFIXES } from '../names/guard.ts'
import {
  addressItem,
  duration,
  faultAt,
  flag,
  group,
  integer,
  list,
  oneOf,
  prefixItem,
  section,
  words,
} from './schema-values.ts'

const TTL = { max: LONGEST_MS } as const

export const listener = group('Address and port that receive queries over UDP and TCP', {
  address: addressItem().optional().meta({
    description:
      'address to listen on (default: all IPv4 and IPv6 addresses; with mode redirect 127.0.0.1 and ::1).',
  }),
  port: integer({
    default: 5300,
    min: 0,
    max: 65_535,
    unit: 'port, 0 takes a free one',
    doc: 'port to listen on',
  }),
  mode: oneOf(['explicit', 'tproxy', 'redirect'], {
    default: 'explicit',
    doc: 'how queries arrive: explicit = clients use namegate as their resolver; tproxy = interception on a node; redirect = interception in one network namespace',
  }),
  interfaces: list(words('interface name'), {
    default: [],
    doc: 'interfaces on which tproxy intercepts queries; empty = the interfaces of the endpoints',
    unit: 'interface names, or prefixes of names such as lxc*',
  }),
  processes: oneOf(['all', 'cgroups'], {
    default: 'all',
    doc: 'whose queries mode redirect takes: all = those of every process of the network namespace; cgroups = only those of processes in the cgroups of endpoints (needs kernel 5.13 and nft 0.9.9)',
  }),
})

export const intercept = section(
  'Interception rules of the modes tproxy and redirect',
  {
    'on-start': flag({ default: false, doc: 'true installs the rules at start' }),
    'on-exit': oneOf(['closed', 'open'], {
      default: 'closed',
      doc: 'DNS of intercepted clients after an orderly stop: closed keeps the rules, so their queries get no answer; open removes the rules, so their queries reach the servers directly',
    }),
    mark: integer({
      default: 0x4e47,
      min: 1,
      max: 0xffff_ffff,
      unit: 'number',
      doc: 'mark on packets that namegate itself sends',
    }),
    table: integer({
      default: 20_039,
      min: 1,
      max: 0x7fff_ffff,
      unit: 'number',
      doc: 'number of the routing table for TPROXY',
    }),
  },
  (keys) => ({
    onStart: keys['on-start'],
    onExit: keys['on-exit'],
    mark: keys.mark,
    table: keys.table,
  }),
)

type Server =
  /** The servers of resolv.conf. */
  { readonly kind: 'system' } | { readonly kind: 'address'; readonly address: SocketAddress }

const server = words('text: system or ADDRESS:PORT').transform((text, context): Server => {
  if (text === 'system') return { kind: 'system' }
  const address = parseSocketAddress(text)
  if (address !== undefined) return { kind: 'address', address }
  context.addIssue({ code: 'custom', message: `system or ${SOCKET_ADDRESS_FORM}` })
  return z.NEVER
})

export const upstreams = section(
  'DNS servers to which namegate forwards queries',
  {
    servers: list(server, {
      default: ['system'],
      min: 1,
      doc: 'servers in order of preference; system = the servers of resolv.conf',
      unit: 'system or ADDRESS:PORT, such as 9.9.9.9:53 or [2620:fe::fe]:53',
    }),
    'original-destination': flag({
      default: false,
      doc: 'true forwards each intercepted query to the server that the client asked',
    }),
    trusted: list(prefixItem(), {
      default: [],
      doc: 'servers from whose answers namegate learns addresses; empty = upstreams.servers',
      unit: 'prefixes',
    }),
    untrusted: oneOf(['refuse', 'pass'], {
      default: 'refuse',
      doc: 'queries to servers that are not trusted: refuse denies them; pass forwards them and learns nothing from the answers',
    }),
    timeout: duration({
      default: '4s',
      min: 10,
      max: 60_000,
      doc: 'time for one query, including all attempts',
    }),
    attempts: integer({
      default: 3,
      min: 1,
      max: 16,
      unit: 'count',
      doc: 'largest number of attempts per query; they use at least two servers if there are two',
    }),
  },
  (keys) => ({
    servers: keys.servers,
    originalDestination: keys['original-destination'],
    trusted: keys.trusted,
    untrusted: keys.untrusted,
    timeoutMs: keys.timeout,
    attempts: keys.attempts,
  }),
)

export const clients = section(
  'Clients that are not known endpoints',
  {
    wait: duration({
      default: '2s',
      doc: 'time for which a query of an unknown client waits until the client becomes known',
    }),
    // oxlint-disable-next-line unicorn/no-thenable -- a key of the file; a schema is never awaited
    then: oneOf(['refuse', 'allow-unmanaged'], {
      default: 'refuse',
      doc: 'what happens to a query after that time: refuse denies it; allow-unmanaged forwards it and learns nothing from the answer',
    }),
  },
  (keys) => ({ waitMs: keys.wait, onTimeout: keys.then }),
)

export const dns = section(
  'Answers to clients',
  {
    'deny-response': oneOf(['refused', 'nxdomain', 'nodata', 'drop'], {
      default: 'refused',
      doc: 'answer to a query that policy denies; drop sends nothing',
    }),
    'without-rules': oneOf(['allow', 'deny'], {
      default: 'allow',
      doc: 'what happens to queries of endpoints that have no DNS rules',
    }),
    hold: section(
      'Answers that wait until the datapath has confirmed their addresses',
      {
        limit: duration({
          default: '100ms',
          min: 1,
          max: 60_000,
          doc: 'longest time for which one answer is held',
        }),
        'on-limit': oneOf(['servfail', 'drop', 'release'], {
          default: 'servfail',
          doc: 'what happens to an answer whose addresses the datapath refused or did not confirm in time: servfail answers SERVFAIL; drop sends nothing; release sends the answer',
        }),
      },
      (keys) => ({ limitMs: keys.limit, onLimit: keys['on-limit'] }),
    ).prefault({}),
    'on-degraded': oneOf(['release', 'servfail', 'strip-addresses'], {
      default: 'release',
      doc: 'what happens to an answer with an address that got fewer labels than policy wants, or none: release sends the answer; servfail answers SERVFAIL; strip-addresses removes these addresses from it',
    }),
    'min-ttl': duration({
      ...TTL,
      default: '0s',
      doc: 'shortest time for which an address stays live; a shorter TTL counts as this time',
    }),
    'max-ttl': duration({
      ...TTL,
      default: '24h',
      doc: 'longest time for which an address stays live; a longer TTL counts as this time',
    }),
    'grace-after-ttl': duration({
      ...TTL,
      default: '60s',
      doc: 'time for which an address stays allowed after its TTL',
    }),
    'tcp-idle': duration({
      default: '6h',
      min: 1000,
      doc: 'time after which an idle TCP connection no longer counts as open',
    }),
    'udp-idle': duration({
      default: '3m',
      min: 1000,
      doc: 'time after which an idle UDP or QUIC connection no longer counts as open; with nftables, sooner if the kernel forgets it sooner',
    }),
    'cname-match': oneOf(['question', 'chain'], {
      default: 'question',
      doc: 'names that selectors must match: question = the name in the question; chain = that name or a name to which its CNAMEs lead',
    }),
    svcb: oneOf(['learn', 'strip', 'pass'], {
      default: 'learn',
      doc: 'address hints in SVCB and HTTPS records: learn treats them like A and AAAA records; strip removes them from the answer; pass keeps them in the answer and does not learn them',
    }),
    guard: oneOf(['pass', 'strip'], {
      default: 'pass',
      doc: 'guarded addresses in answers: pass keeps them; strip removes them; namegate learns them in neither case',
    }),
    'protected-prefixes': list(prefixItem(), {
      default: [],
      doc: 'further guarded addresses, which names never open; loopback, link-local, multicast and the own addresses of the node are always guarded',
      unit: 'prefixes',
    }),
    'guard-private': flag({
      default: false,
      doc: 'true adds every private range to protected-prefixes: 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 100.64.0.0/10, fc00::/7',
    }),
    prewarm: flag({
      default: false,
      doc: 'true asks for the exact names of policies before a client asks for them',
    }),
  },
  (keys, context) => {
    if (keys['min-ttl'] > keys['max-ttl']) {
      context.addIssue(faultAt(['min-ttl'], 'found a longer time than dns.max-ttl'))
    }
    return {
      denyResponse: keys['deny-response'],
      withoutRules: keys['without-rules'],
      hold: keys.hold,
      onDegraded: keys['on-degraded'],
      cnameMatch: keys['cname-match'],
      svcb: keys.svcb,
      guard: keys.guard,
      minTtlMs: keys['min-ttl'],
      maxTtlMs: keys['max-ttl'],
      graceAfterTtlMs: keys['grace-after-ttl'],
      tcpIdleMs: keys['tcp-idle'],
      udpIdleMs: keys['udp-idle'],
      protectedPrefixes: [
        ...keys['protected-prefixes'],
        ...(keys['guard-private'] ? PRIVATE_PREFIXES : []),
      ],
      prewarm: keys.prewarm,
    }
  },
)
