// The keys of the configuration file as types for programs. Made from src/config/schema.ts by `npm run reference`; edit the
// schema or test/support/library-types.ts instead. Every key may be left out.

import type { LimitKey } from '../core/limits.ts'

/** A whole number and its unit, such as `100ms` or `24h`. */
export type Duration = `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

/** A whole number and its unit, such as `256MiB`. */
export type Size = `${number}${'KiB' | 'MiB' | 'GiB'}`

/** Labels of endpoints. */
export interface LabelSelectorKeys {
  /** Each of these labels must be there (default {}). */
  matchLabels?: Readonly<Record<string, string>> | undefined
  /** Conditions on labels, each of which must hold (default []). */
  matchExpressions?:
    | readonly {
        /** Key of the label. */
        key: string
        /** What must hold: In, NotIn, Exists or DoesNotExist. */
        operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist'
        /** Values for In and NotIn (default []). */
        values?: readonly string[] | undefined
      }[]
    | undefined
}

/** Where queries are taken, UDP and TCP both. */
export interface ListenerKeys {
  /** Address to listen on (default: all addresses, both families). */
  address?: string | undefined
  /** 0 takes a free one, which `Gate.addresses` has (default 5300). */
  port?: number | undefined
  /** How queries come in: clients name us as their resolver, or are redirected (default explicit). */
  mode?: 'explicit' | 'tproxy' | 'redirect' | undefined
  /** Interfaces to intercept on (tproxy); empty = those of the endpoints (default []). */
  interfaces?: readonly string[] | undefined
}

/** Redirect rules of the transparent modes. */
export interface InterceptKeys {
  /** Install the rules at start (default false). */
  'on-start'?: boolean | undefined
  /** DNS of intercepted clients after an orderly stop (default closed). */
  'on-exit'?: 'closed' | 'open' | undefined
  /** Mark of the packets that namegate itself sends (default 20039). */
  mark?: number | undefined
  /** Routing table for TPROXY (default 20039). */
  table?: number | undefined
}

/** Servers that queries go to. */
export interface UpstreamsKeys {
  /** Servers in order of preference; system = resolv.conf (default ["system"]). */
  servers?: readonly string[] | undefined
  /** Transparent modes: forward to the server the client asked (default false). */
  'original-destination'?: boolean | undefined
  /** Servers that may teach addresses; empty = the servers above (default []). */
  trusted?: readonly string[] | undefined
  /** Queries to other servers: refused, or forwarded and nothing learned (default refuse). */
  untrusted?: 'refuse' | 'pass' | undefined
  /** For the whole query, all attempts (default 4s). */
  timeout?: Duration | undefined
  /** Attempts, over 2 servers or more where there are (default 3). */
  attempts?: number | undefined
}

/** Where policy comes from. */
export interface PoliciesKeys {
  /** Files or directories with policies (default: none). */
  paths?: readonly string[] | undefined
  /** Read a changed file again (default true). */
  watch?: boolean | undefined
  /** Labels of the endpoints that *.allow files apply to; empty = all (default {}). */
  'allow-list-endpoints'?: Readonly<Record<string, string>> | undefined
  /** Policies that have an ingress half: refused, or their egress half alone is loaded (default error). */
  ingress?: 'error' | 'ignore' | undefined
  /** Fields of policies that are known but not supported; with warn what they stand in allows nothing (default error). */
  'unsupported-fields'?: 'error' | 'warn' | undefined
  /** CIDR rules also select known endpoints, resources and the node (default false). */
  'cidr-matches-endpoints'?: boolean | undefined
}

/** What is answered. */
export interface DnsKeys {
  /** Answer to a name that policy denies (default refused). */
  'deny-response'?: 'refused' | 'nxdomain' | 'nodata' | 'drop' | undefined
  /** Questions of endpoints that have no DNS rules (default allow). */
  'without-rules'?: 'allow' | 'deny' | undefined
  /** Answers that wait for the datapath. */
  hold?:
    | {
        /** Longest hold of one answer (default 100ms). */
        limit?: Duration | undefined
        /** What happens to an answer that is held out (default servfail). */
        'on-limit'?: 'servfail' | 'drop' | 'release' | undefined
      }
    | undefined
  /** Answers some of whose addresses got fewer labels or none: strip-addresses takes these out of the message (default release). */
  'on-degraded'?: 'release' | 'servfail' | 'strip-addresses' | undefined
  /** Shortest time an address counts as live (default 0s). */
  'min-ttl'?: Duration | undefined
  /** Longest time an address counts as live (default 24h). */
  'max-ttl'?: Duration | undefined
  /** How long an address stays allowed after its TTL (default 60s). */
  'grace-after-ttl'?: Duration | undefined
  /** An idle TCP connection counts as open for so long (default 6h). */
  'tcp-idle'?: Duration | undefined
  /** An idle UDP or QUIC flow counts as open for so long; with nftables no longer than the kernel keeps it (default 3m). */
  'udp-idle'?: Duration | undefined
  /** Which names of an answer selectors are matched with: the name asked alone, or those that its CNAMEs lead to as well (default question). */
  'cname-match'?: 'question' | 'chain' | undefined
  /** Address hints in SVCB and HTTPS records: learn teaches them as A and AAAA are, strip takes them out of the message, pass passes them unlearned (default learn). */
  svcb?: 'learn' | 'strip' | 'pass' | undefined
  /** Guarded addresses in answers: strip takes them out of the message; they never get labels either way (default pass). */
  guard?: 'pass' | 'strip' | undefined
  /** Addresses that never get labels from answers, besides loopback, link-local, multicast and our own (default []). */
  'protected-prefixes'?: readonly string[] | undefined
  /** Protects every private range as protected-prefixes does: 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 100.64.0.0/10, fc00::/7 (default false). */
  'guard-private'?: boolean | undefined
  /** Ask the exact names of policies before the first query (default false). */
  prewarm?: boolean | undefined
}

/** What enforces. */
export interface DatapathKeys {
  /** `memory` enforces nothing and needs no root: it shows what would be (default memory). */
  kind?: 'memory' | 'ebpf' | 'nftables' | undefined
  /** The eBPF datapath. */
  ebpf?:
    | {
        /** Folder of bpffs for the pinned maps (default /sys/fs/bpf/namegate). */
        'pin-path'?: string | undefined
      }
    | undefined
  /** Time between two comparisons of the kernel's maps with the wanted entries; differences are repaired (default 1m). */
  verify?: Duration | undefined
  /** Flows open before an endpoint was first enforced pass for so long (default 10m). */
  'adopt-existing'?: Duration | undefined
}

/** The configuration, with the keys of the file. */
export interface GateConfig {
  /** Left out: 127.0.0.1 at a free port. */
  listeners?: readonly ListenerKeys[] | undefined
  /** Redirect rules of the transparent modes. */
  intercept?: InterceptKeys | undefined
  /** Servers that queries go to. */
  upstreams?: UpstreamsKeys | undefined
  /** Where policy comes from. */
  policies?: PoliciesKeys | undefined
  /** Workloads that policy applies to. */
  endpoints?:
    | {
        /** Endpoints files (default: none). */
        files?: readonly string[] | undefined
        /** Labels that make identities, and that policies see; keys without `!` are the only ones kept (default: those of Cilium). */
        'identity-labels'?: readonly string[] | undefined
      }
    | undefined
  /** Cluster of endpoints whose labels name none, as the label k8s:io.cilium.k8s.policy.cluster (default default). */
  'cluster-name'?: string | undefined
  /** Addresses with labels and no client on them. */
  resources?:
    | {
        /** Resources files (default []). */
        files?: readonly string[] | undefined
      }
    | undefined
  /** Clients that are no known endpoint. */
  'unknown-clients'?:
    | {
        /** How long their queries wait for an endpoint to appear (default 2s). */
        wait?: Duration | undefined
        /** What happens then (default refuse). */
        then?: 'refuse' | 'allow-unmanaged' | undefined
      }
    | undefined
  /** What endpoints may do that no policy puts into default deny (default allow). */
  'default-egress'?: 'allow' | 'allow-named' | 'allow-known' | 'audit' | 'deny' | undefined
  /** Let pass and report what would be denied. */
  audit?:
    | {
        /** Every endpoint (default false). */
        node?: boolean | undefined
        /** Endpoints that any of these selects (default []). */
        endpoints?: readonly LabelSelectorKeys[] | undefined
      }
    | undefined
  /** Whom an address that one endpoint learned is known to (default node). */
  learning?: 'node' | 'endpoint' | undefined
  /** What enforces. */
  datapath?: DatapathKeys | undefined
  /** What outlives the process. Left out: nothing is kept on disk. */
  state?:
    | {
        /** Folder of the state (default var/state). */
        directory?: string | undefined
        /** Time after which restored entries go that no source has claimed (default 10m). */
        'restore-grace'?: Duration | undefined
      }
    | undefined
  /** Policy and endpoint sources that fall silent. */
  sources?:
    | {
        /** Not one look at all paths of policies, or of endpoints, succeeded for so long (default 24h). */
        'max-age'?: Duration | undefined
        /** Then: keep what is in force; audit the node; or deny every name that is asked, what is known stays (default keep). */
        then?: 'keep' | 'audit' | 'deny' | undefined
      }
    | undefined
  /** Decisions and drops kept on disk; only with `state`. */
  flows?:
    | {
        /** Age at which they go (default 7d). */
        keep?: Duration | undefined
        /** Size of all at which the oldest go, at least 1MiB (default 256MiB). */
        'max-size'?: Size | undefined
        /** Where they go: file is the folder flows in that of the state (default ["file"]). */
        output?: readonly ('file' | 'stdout' | 'syslog')[] | undefined
      }
    | undefined
  /** The admin API. Left out: no socket for `namegate get`, `status` and the like. */
  admin?:
    | {
        /** UNIX socket (default var/run/admin.sock). */
        socket?: string | undefined
      }
    | undefined
  /** Metrics and health. Left out: none. Port 0 takes a free one, which `Gate.metricsPort` has. */
  metrics?:
    | {
        /** Address to listen on (default 127.0.0.1). */
        address?: string | undefined
        /** Port (default 9465). */
        port?: number | undefined
      }
    | undefined
  /** What is answered. */
  dns?: DnsKeys | undefined
  /** Bounds; times as durations. */
  limits?: { [Key in LimitKey]?: number | Duration | undefined } | undefined
  /** What `GateOptions.log` is called with. */
  log?:
    | {
        /** Least level that is written (default info). */
        level?: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | undefined
        /** For people or for machines (default pretty). */
        format?: 'pretty' | 'json' | undefined
      }
    | undefined
}
