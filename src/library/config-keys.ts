// The keys of the configuration file as types for programs. Made from src/config/schema.ts by `npm run reference`; edit the
// schema or test/support/library-types.ts instead. Every key may be left out.

import type { LimitKey } from '../core/limits.ts'

/** A whole number and its unit, such as `100ms` or `24h`. */
export type Duration = `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

/** A whole number and its unit, such as `256MiB`. */
export type Size = `${number}${'KiB' | 'MiB' | 'GiB'}`

/** Labels of endpoints. */
export interface LabelSelectorKeys {
  /** Labels that the endpoint must have, all of them (default {}). */
  matchLabels?: Readonly<Record<string, string>> | undefined
  /** Conditions on labels, all of which must hold (default []). */
  matchExpressions?:
    | readonly {
        /** Key of the label. */
        key: string
        /** Condition on the label: In, NotIn, Exists or DoesNotExist. */
        operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist'
        /** Values for In and NotIn (default []). */
        values?: readonly string[] | undefined
      }[]
    | undefined
}

/** Address and port that receive queries over UDP and TCP. */
export interface ListenerKeys {
  /** Address to listen on (default: all IPv4 and IPv6 addresses; with mode redirect 127.0.0.1 and ::1). */
  address?: string | undefined
  /** 0 takes a free one, which `Gate.addresses` has (default 5300). */
  port?: number | undefined
  /** How queries arrive: explicit = clients use namegate as their resolver; tproxy = interception on a node; redirect = interception in one network namespace (default explicit). */
  mode?: 'explicit' | 'tproxy' | 'redirect' | undefined
  /** Interfaces on which tproxy intercepts queries; empty = the interfaces of the endpoints (default []). */
  interfaces?: readonly string[] | undefined
  /** Whose queries mode redirect takes: all = those of every process of the network namespace; cgroups = only those of processes in the cgroups of endpoints (needs kernel 5.13 and nft 0.9.9) (default all). */
  processes?: 'all' | 'cgroups' | undefined
}

/** Interception rules of the modes tproxy and redirect. */
export interface InterceptKeys {
  /** True installs the rules at start (default false). */
  'on-start'?: boolean | undefined
  /** DNS of intercepted clients after an orderly stop: closed keeps the rules, so their queries get no answer; open removes the rules, so their queries reach the servers directly (default closed). */
  'on-exit'?: 'closed' | 'open' | undefined
  /** Mark on packets that namegate itself sends (default 20039). */
  mark?: number | undefined
  /** Number of the routing table for TPROXY (default 20039). */
  table?: number | undefined
}

/** DNS servers to which namegate forwards queries. */
export interface UpstreamsKeys {
  /** Servers in order of preference; system = the servers of resolv.conf (default ["system"]). */
  servers?: readonly string[] | undefined
  /** True forwards each intercepted query to the server that the client asked (default false). */
  'original-destination'?: boolean | undefined
  /** Servers from whose answers namegate learns addresses; empty = upstreams.servers (default []). */
  trusted?: readonly string[] | undefined
  /** Queries to servers that are not trusted: refuse denies them; pass forwards them and learns nothing from the answers (default refuse). */
  untrusted?: 'refuse' | 'pass' | undefined
  /** Time for one query, including all attempts (default 4s). */
  timeout?: Duration | undefined
  /** Largest number of attempts per query; they use at least two servers if there are two (default 3). */
  attempts?: number | undefined
}

/** Files with policies. */
export interface PoliciesKeys {
  /** Files or directories with policies (default: none). */
  paths?: readonly string[] | undefined
  /** True reads changed files of policies, endpoints and resources again (default true). */
  watch?: boolean | undefined
  /** Labels of the endpoints to which *.allow files apply; empty = all endpoints (default {}). */
  'allow-list-endpoints'?: Readonly<Record<string, string>> | undefined
  /** Policies with ingress rules: error refuses them; ignore loads only their egress rules (default error). */
  ingress?: 'error' | 'ignore' | undefined
  /** Fields that are known but not supported: error refuses the policy; warn loads it, and the rule or peer with the field allows nothing (default error). */
  'unsupported-fields'?: 'error' | 'warn' | undefined
  /** True lets CIDR rules also select known endpoints, resources and the node (default false). */
  'cidr-matches-endpoints'?: boolean | undefined
}

/** Answers to clients. */
export interface DnsKeys {
  /** Answer to a query that policy denies; drop sends nothing (default refused). */
  'deny-response'?: 'refused' | 'nxdomain' | 'nodata' | 'drop' | undefined
  /** What happens to queries of endpoints that have no DNS rules (default allow). */
  'without-rules'?: 'allow' | 'deny' | undefined
  /** Answers that wait until the datapath has confirmed their addresses. */
  hold?:
    | {
        /** Longest time for which one answer is held (default 100ms). */
        limit?: Duration | undefined
        /** What happens to an answer whose addresses the datapath refused or did not confirm in time: servfail answers SERVFAIL; drop sends nothing; release sends the answer (default servfail). */
        'on-limit'?: 'servfail' | 'drop' | 'release' | undefined
      }
    | undefined
  /** What happens to an answer with an address that got fewer labels than policy wants, or none: release sends the answer; servfail answers SERVFAIL; strip-addresses removes these addresses from it (default release). */
  'on-degraded'?: 'release' | 'servfail' | 'strip-addresses' | undefined
  /** Shortest time for which an address stays live; a shorter TTL counts as this time (default 0s). */
  'min-ttl'?: Duration | undefined
  /** Longest time for which an address stays live; a longer TTL counts as this time (default 24h). */
  'max-ttl'?: Duration | undefined
  /** Time for which an address stays allowed after its TTL (default 60s). */
  'grace-after-ttl'?: Duration | undefined
  /** Time after which an idle TCP connection no longer counts as open (default 6h). */
  'tcp-idle'?: Duration | undefined
  /** Time after which an idle UDP or QUIC connection no longer counts as open; with nftables, sooner if the kernel forgets it sooner (default 3m). */
  'udp-idle'?: Duration | undefined
  /** Names that selectors must match: question = the name in the question; chain = that name or a name to which its CNAMEs lead (default question). */
  'cname-match'?: 'question' | 'chain' | undefined
  /** Address hints in SVCB and HTTPS records: learn treats them like A and AAAA records; strip removes them from the answer; pass keeps them in the answer and does not learn them (default learn). */
  svcb?: 'learn' | 'strip' | 'pass' | undefined
  /** Guarded addresses in answers: pass keeps them; strip removes them; namegate learns them in neither case (default pass). */
  guard?: 'pass' | 'strip' | undefined
  /** Further guarded addresses, which names never open; loopback, link-local, multicast and the own addresses of the node are always guarded (default []). */
  'protected-prefixes'?: readonly string[] | undefined
  /** True adds every private range to protected-prefixes: 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 100.64.0.0/10, fc00::/7 (default false). */
  'guard-private'?: boolean | undefined
  /** True asks for the exact names of policies before a client asks for them (default false). */
  prewarm?: boolean | undefined
}

/** The part that enforces policy. */
export interface DatapathKeys {
  /** `memory` enforces nothing and needs no root: it shows what would be (default memory). */
  kind?: 'memory' | 'ebpf' | 'nftables' | undefined
  /** The eBPF datapath. */
  ebpf?:
    | {
        /** Folder in bpffs for the pinned maps (default /sys/fs/bpf/namegate). */
        'pin-path'?: string | undefined
      }
    | undefined
  /** Time between two comparisons of the kernel's maps with the wanted entries; namegate repairs differences (default 1m). */
  verify?: Duration | undefined
  /** Time for which connections stay allowed that are older than the first enforcement of their endpoint (default 10m). */
  'adopt-existing'?: Duration | undefined
}

/** The configuration, with the keys of the file. */
export interface GateConfig {
  /** Left out: 127.0.0.1 at a free port. */
  listeners?: readonly ListenerKeys[] | undefined
  /** Interception rules of the modes tproxy and redirect. */
  intercept?: InterceptKeys | undefined
  /** DNS servers to which namegate forwards queries. */
  upstreams?: UpstreamsKeys | undefined
  /** Files with policies. */
  policies?: PoliciesKeys | undefined
  /** Workloads to which policy applies. */
  endpoints?:
    | {
        /** Endpoints files (default: none). */
        files?: readonly string[] | undefined
        /** Labels that make identities, and that policies see; keys without `!` are the only ones kept (default: those of Cilium). */
        'identity-labels'?: readonly string[] | undefined
      }
    | undefined
  /** Cluster of endpoints without the label k8s:io.cilium.k8s.policy.cluster (default default). */
  'cluster-name'?: string | undefined
  /** Addresses with labels that no endpoint has. */
  resources?:
    | {
        /** Files of external resources (default []). */
        files?: readonly string[] | undefined
      }
    | undefined
  /** Pods, namespaces and policies that a Kubernetes API server has. Without this section namegate asks no server. */
  kubernetes?:
    | {
        /** False asks no server (default true). */
        enabled?: boolean | undefined
        /** File with the server and the credentials (path, relative to the folder of this file); empty: the service account of the pod that namegate runs in. */
        kubeconfig?: string | undefined
        /** Name of this node in the cluster; empty: the environment variable NODE_NAME, else the name of the host. */
        node?: string | undefined
        /** What namegate reads (default ["pods","namespaces","network-policies","cilium-policies","cluster-network-policies"]). */
        collections?:
          | readonly (
              | 'pods'
              | 'namespaces'
              | 'network-policies'
              | 'cilium-policies'
              | 'cluster-network-policies'
            )[]
          | undefined
        /** Namespaces whose pods and policies are read (default []). */
        namespaces?: readonly string[] | undefined
        /** Cluster of the pods, in their label io.cilium.k8s.policy.cluster (default default). */
        'cluster-name'?: string | undefined
        /** Pods of other nodes: none = unknown; watch = known, up to limits.peers, so that rules that select pods hold for them (default none). */
        peers?: 'none' | 'watch' | undefined
        /** Time over which lists are spread after an outage, so that the nodes of a cluster do not all ask at once (default 60s). */
        spread?: Duration | undefined
        /** Removal of many policies at once, which can be an accident. */
        'mass-removal'?:
          | {
              /** A part of all policies of a kind; if more than this part is removed within 10 seconds, namegate holds the removals (default 20%). */
              share?: string | undefined
              /** How long the removed policies stay in force (default 5m). */
              hold?: Duration | undefined
            }
          | undefined
        /** Events about policies with faults, which `kubectl describe` shows. */
        events?:
          | {
              /** True lets one node of the cluster write them, which needs rights of its own (default false). */
              enabled?: boolean | undefined
              /** Namespace of the Lease that chooses the node (default namegate). */
              namespace?: string | undefined
              /** How long the node can be silent before another node takes its place (default 60s). */
              lease?: Duration | undefined
            }
          | undefined
      }
    | undefined
  /** Clients that are not known endpoints. */
  'unknown-clients'?:
    | {
        /** Time for which a query of an unknown client waits until the client becomes known (default 2s). */
        wait?: Duration | undefined
        /** What happens to a query after that time: refuse denies it; allow-unmanaged forwards it and learns nothing from the answer (default refuse). */
        then?: 'refuse' | 'allow-unmanaged' | undefined
      }
    | undefined
  /** What an endpoint can reach if no policy turns default deny on for it (default allow). */
  'default-egress'?: 'allow' | 'allow-named' | 'allow-known' | 'audit' | 'deny' | undefined
  /** Audit, which allows and reports what policy denies. */
  audit?:
    | {
        /** True audits every endpoint (default false). */
        node?: boolean | undefined
        /** Endpoints to audit: those that at least one item selects (default []). */
        endpoints?: readonly LabelSelectorKeys[] | undefined
      }
    | undefined
  /** Who knows an address that one endpoint learned: node = all endpoints of the node, each with its own policy; endpoint = that endpoint alone (default node). */
  learning?: 'node' | 'endpoint' | undefined
  /** The part that enforces policy. */
  datapath?: DatapathKeys | undefined
  /** What outlives the process. Left out: nothing is kept on disk. */
  state?:
    | {
        /** State folder (default var/state). */
        directory?: string | undefined
        /** Time after a start in which addresses and identities from before the start stay reserved (default 10m). */
        'restore-grace'?: Duration | undefined
      }
    | undefined
  /** Sources of policies and endpoints that cannot be read any more. */
  sources?:
    | {
        /** Time without a successful read of all paths of policies, of all paths of endpoints, or of all collections of the cluster, after which sources.then applies (default 24h). */
        'max-age'?: Duration | undefined
        /** What happens until they can be read again: keep changes nothing; audit audits the node; deny refuses every query, and learned addresses stay allowed until they expire (default keep). */
        then?: 'keep' | 'audit' | 'deny' | undefined
      }
    | undefined
  /** Decisions and drops kept on disk; only with `state`. */
  flows?:
    | {
        /** Age after which flows are removed (default 7d). */
        keep?: Duration | undefined
        /** Total size above which the oldest flows are removed, at least 1MiB (default 256MiB). */
        'max-size'?: Size | undefined
        /** Outputs of flows; file = the folder flows in the state folder (default ["file"]). */
        output?: readonly ('file' | 'stdout' | 'syslog')[] | undefined
      }
    | undefined
  /** The admin API. Left out: no socket for `namegate get`, `status` and the like. */
  admin?:
    | {
        /** Path of the UNIX socket (default var/run/admin.sock). */
        socket?: string | undefined
        /** The web page over TCP. Without this section only the admin socket serves the page. */
        page?:
          | {
              /** Address and port to listen on (default 127.0.0.1:9466). */
              address?: string | undefined
              /** File with the token that a browser must show, at least 16 characters; other users must not be able to read the file (path, relative to the folder of this file, or credential:NAME). */
              'token-file'?: string | undefined
              /** Certificate for TLS. An address that is not loopback needs it. */
              tls?:
                | {
                    /** Certificate chain in PEM form (path, relative to the folder of this file, or credential:NAME). */
                    certificate: string
                    /** Private key in PEM form (path, relative to the folder of this file, or credential:NAME). */
                    key: string
                    /** Certificate authorities in PEM form; a client whose certificate they signed needs no token (path, relative to the folder of this file, or credential:NAME). */
                    'client-ca'?: string | undefined
                  }
                | undefined
              /** True lets the page turn audit of endpoints on and off (default false). */
              write?: boolean | undefined
            }
          | undefined
      }
    | undefined
  /** Metrics and health. Left out: none. Port 0 takes a free one, which `Gate.metricsPort` has. */
  metrics?:
    | {
        /** Address to listen on (default 127.0.0.1). */
        address?: string | undefined
        /** Port to listen on (default 9465). */
        port?: number | undefined
      }
    | undefined
  /** Answers to clients. */
  dns?: DnsKeys | undefined
  /** Bounds; times as durations. */
  limits?: { [Key in LimitKey]?: number | Duration | undefined } | undefined
  /** What `GateOptions.log` is called with. */
  log?:
    | {
        /** Lowest level that is logged (default info). */
        level?: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | undefined
        /** Format of log lines: pretty for people, json for machines (default pretty). */
        format?: 'pretty' | 'json' | undefined
      }
    | undefined
}
