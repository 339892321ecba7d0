// The keys of the configuration file (src/config/schema.ts) as types for programs: the same names, words and
// meanings. Every key may be left out. test/library/types.test.ts holds that the two have the same keys.
// Types only; defaults and ranges are the schema's, and `namegate config schema` prints them.

import type { LimitKey } from '../core/limits.ts'

/** A whole number and its unit, such as `100ms` or `24h`. */
export type Duration = `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

/** A whole number and its unit, such as `256MiB`. */
export type Size = `${number}${'KiB' | 'MiB' | 'GiB'}`

/** Labels by key, or by `source:key`; no source is any source. */
export interface LabelSelectorKeys {
  matchLabels?: Readonly<Record<string, string>> | undefined
  matchExpressions?:
    | readonly {
        key: string
        operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist'
        values?: readonly string[] | undefined
      }[]
    | undefined
}

/** Where queries are taken, over UDP and TCP. */
export interface ListenerKeys {
  /** Left out: every address of the host, both families. */
  address?: string | undefined
  /** 0 takes a free one, which `Gate.addresses` tells. */
  port?: number | undefined
  mode?: 'explicit' | 'tproxy' | 'redirect' | undefined
  /** Mode tproxy: interface names, or their beginnings such as `lxc*`; none: those of the endpoints. */
  interfaces?: readonly string[] | undefined
}

/** The rules of the transparent modes. */
export interface InterceptKeys {
  /** Whether the rules are put in at the start. */
  'on-start'?: boolean | undefined
  /** What an orderly stop leaves: rules that drop DNS, or none. */
  'on-exit'?: 'closed' | 'open' | undefined
  /** Mark of our own packets. */
  mark?: number | undefined
  /** Routing table for TPROXY. */
  table?: number | undefined
}

/** Servers that queries go to. */
export interface UpstreamsKeys {
  /** `ADDRESS:PORT` in order of preference, or `system` for those of resolv.conf. */
  servers?: readonly string[] | undefined
  'original-destination'?: boolean | undefined
  /** Prefixes of servers that may teach addresses; none: `servers`. */
  trusted?: readonly string[] | undefined
  untrusted?: 'refuse' | 'pass' | undefined
  /** For a whole query, all attempts. */
  timeout?: Duration | undefined
  attempts?: number | undefined
}

/** Policy files; a library's gate has none unless they are named here. */
export interface PoliciesKeys {
  paths?: readonly string[] | undefined
  /** Read changed files again. */
  watch?: boolean | undefined
  /** Labels of the endpoints that `*.allow` files are for; none: all. */
  'allow-list-endpoints'?: Readonly<Record<string, string>> | undefined
  /** Policies that have an ingress half: refused, or their egress half alone is loaded. */
  ingress?: 'error' | 'ignore' | undefined
  /** Fields of policies that are known and not supported; with `warn` what they stand in allows nothing. */
  'unsupported-fields'?: 'error' | 'warn' | undefined
  /** CIDR rules also select known endpoints, resources and the node. */
  'cidr-matches-endpoints'?: boolean | undefined
}

/** What is answered, and what an answer teaches. */
export interface DnsKeys {
  /** Answer to a name that policy denies. */
  'deny-response'?: 'refused' | 'nxdomain' | 'nodata' | 'drop' | undefined
  /** Questions of endpoints that have no DNS rules. */
  'without-rules'?: 'allow' | 'deny' | undefined
  /** Answers that wait for the datapath. */
  hold?:
    | { limit?: Duration | undefined; 'on-limit'?: 'servfail' | 'drop' | 'release' | undefined }
    | undefined
  'on-degraded'?: 'release' | 'servfail' | 'strip-addresses' | undefined
  'min-ttl'?: Duration | undefined
  'max-ttl'?: Duration | undefined
  /** How long an address stays allowed after its TTL. */
  'grace-after-ttl'?: Duration | undefined
  /** An idle TCP connection counts as open for so long. */
  'tcp-idle'?: Duration | undefined
  /** An idle UDP or QUIC flow counts as open for so long. */
  'udp-idle'?: Duration | undefined
  'cname-match'?: 'question' | 'chain' | undefined
  svcb?: 'learn' | 'strip' | 'pass' | undefined
  guard?: 'pass' | 'strip' | undefined
  /** Addresses that never get labels from answers, besides loopback, link-local, multicast and our own. */
  'protected-prefixes'?: readonly string[] | undefined
  /** Protects every private range as well: 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 100.64.0.0/10, fc00::/7. */
  'guard-private'?: boolean | undefined
  /** Ask the exact names of policies before the first query. */
  prewarm?: boolean | undefined
}

/** What enforces. */
export interface DatapathKeys {
  /** `memory` enforces nothing and needs no root: it shows what would be. */
  kind?: 'memory' | 'ebpf' | 'nftables' | undefined
  ebpf?: { 'pin-path'?: string | undefined } | undefined
  /** How often the kernel's maps are compared with what is wanted, and repaired. */
  verify?: Duration | undefined
  /** Flows open before an endpoint was first enforced pass for so long. */
  'adopt-existing'?: Duration | undefined
}

/** The configuration, with the keys of the file. */
export interface GateConfig {
  /** Left out: 127.0.0.1 at a free port. */
  listeners?: readonly ListenerKeys[] | undefined
  intercept?: InterceptKeys | undefined
  upstreams?: UpstreamsKeys | undefined
  policies?: PoliciesKeys | undefined
  /** Endpoints files; a library's gate has none unless they are named here. */
  endpoints?:
    | {
        files?: readonly string[] | undefined
        /** Labels that make identities, and that policies see; keys without `!` are the only ones kept. */
        'identity-labels'?: readonly string[] | undefined
      }
    | undefined
  /** Cluster of endpoints whose labels name none. */
  'cluster-name'?: string | undefined
  /** Files of addresses with labels and no client on them. */
  resources?: { files?: readonly string[] | undefined } | undefined
  /** Clients that are no known endpoint. */
  'unknown-clients'?:
    { wait?: Duration | undefined; then?: 'refuse' | 'allow-unmanaged' | undefined } | undefined
  /** What endpoints may do that no policy puts into default deny. */
  'default-egress'?: 'allow' | 'allow-named' | 'allow-known' | 'audit' | 'deny' | undefined
  /** Let pass and report what would be denied. */
  audit?:
    { node?: boolean | undefined; endpoints?: readonly LabelSelectorKeys[] | undefined } | undefined
  /** Whom an address that one endpoint learned is known to. */
  learning?: 'node' | 'endpoint' | undefined
  datapath?: DatapathKeys | undefined
  /** Left out: nothing is kept on disk. */
  state?:
    | {
        directory?: string | undefined
        /** Restored entries that nothing claims go after so long. */
        'restore-grace'?: Duration | undefined
      }
    | undefined
  /** What happens when sources of policies or endpoints are silent for too long. */
  sources?:
    { 'max-age'?: Duration | undefined; then?: 'keep' | 'audit' | 'deny' | undefined } | undefined
  /** Flows kept outside of the program; only with `state`. */
  flows?:
    | {
        keep?: Duration | undefined
        'max-size'?: Size | undefined
        output?: readonly ('file' | 'stdout' | 'syslog')[] | undefined
      }
    | undefined
  /** Left out: no socket for `namegate get`, `status` and the like. */
  admin?: { socket?: string | undefined } | undefined
  /** Left out: no metrics. Port 0 takes a free one, which `Gate.metricsPort` tells. */
  metrics?: { address?: string | undefined; port?: number | undefined } | undefined
  dns?: DnsKeys | undefined
  /** Bounds; times as durations. */
  limits?: { [Key in LimitKey]?: number | Duration | undefined } | undefined
  /** What `GateOptions.log` is called with. */
  log?:
    | {
        level?: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | undefined
        format?: 'pretty' | 'json' | undefined
      }
    | undefined
}
