// The configuration as the program reads it: checked and frozen. config/load.ts makes it from the keys of the file, whose words
// and values config/schema.ts describes. Durations are milliseconds, sizes octets; relative paths start at the folder of the file.

import type { Position } from '../core/errors.ts'
import type { Prefix } from '../core/ip.ts'
import type { Limits } from '../core/limits.ts'
import type { SocketAddress } from '../core/socket-address.ts'
import type { DefaultEgress } from '../policy/compile/default-egress.ts'
import type { LabelSelector } from '../policy/rule.ts'
import type { ConfigKeys } from './schema.ts'

type DnsKeys = ConfigKeys['dns']

export interface Config {
  /** The path of the file; `built-in` for the defaults. */
  readonly file: string
  readonly listeners: readonly ListenerConfig[]
  readonly intercept: InterceptConfig
  readonly upstreams: UpstreamsConfig
  readonly unknownClients: UnknownClientsConfig
  readonly policies: PoliciesConfig
  readonly endpoints: {
    readonly files: readonly PlacedPath[]
    /** Which labels make identities (policy/identity-labels.ts). */
    readonly identityLabels: readonly string[]
  }
  /** The cluster of endpoints whose labels name none. */
  readonly clusterName: string
  readonly resources: { readonly files: readonly PlacedPath[] }
  /** The default of endpoints that no policy puts into default deny. */
  readonly defaultEgress: DefaultEgress
  /** Whether an address that one endpoint learned is known to the whole node, or to that endpoint alone. */
  readonly learning: ConfigKeys['learning']
  readonly audit: { readonly node: boolean; readonly endpoints: readonly LabelSelector[] }
  readonly datapath: DatapathConfig
  readonly state: { readonly directory: string; readonly restoreGraceMs: number }
  /** What happens when sources of policies or endpoints are silent for longer (src/sources/source-ages.ts). */
  readonly sources: {
    readonly maxAgeMs: number
    readonly onMaxAge: ConfigKeys['sources']['then']
  }
  readonly flows: FlowsConfig
  readonly admin: { readonly socket: string }
  /** `address` without port, as in RFC 5952; port 0 takes a free one. */
  readonly metrics: { readonly address: string; readonly port: number }
  readonly dns: DnsConfig
  readonly limits: Limits
  readonly log: { readonly level: LogLevel; readonly format: ConfigKeys['log']['format'] }
}

export interface PoliciesConfig {
  readonly paths: readonly PlacedPath[]
  readonly watch: boolean
  /** Labels of the endpoints that allow-lists are for; empty: all. */
  readonly allowListEndpoints: ReadonlyMap<string, string>
  readonly ingress: ConfigKeys['policies']['ingress']
  readonly unsupportedFields: ConfigKeys['policies']['unsupported-fields']
  /** CIDR rules also select known endpoints, resources and the node. */
  readonly cidrMatchesEndpoints: boolean
}

/** A path with its place in the file, for faults such as a missing file. */
export interface PlacedPath {
  readonly path: string
  readonly position: Position
}

export interface ListenerConfig {
  /** Undefined: all addresses of the node, both families. */
  readonly address: Prefix | undefined
  /** Port 0 takes a free one. UDP and TCP both. */
  readonly port: number
  readonly mode: ListenerMode
  /** For mode tproxy: names, or their beginnings such as `lxc*`; empty: the interfaces of the endpoints. */
  readonly interfaces: readonly string[]
  readonly position: Position
}

export type ListenerMode = ConfigKeys['listeners'][number]['mode']

export interface InterceptConfig {
  /** Whether the daemon installs the rules at its start. */
  readonly onStart: boolean
  /** An orderly stop leaves rules that drop, or none. */
  readonly onExit: ConfigKeys['intercept']['on-exit']
  /** Mark of our own packets, 1..0xffffffff. */
  readonly mark: number
  /** Routing table for TPROXY. */
  readonly table: number
}

export interface UnknownClientsConfig {
  /** How long a query waits for its endpoint to become known. */
  readonly waitMs: number
  readonly onTimeout: ConfigKeys['unknown-clients']['then']
}

export interface UpstreamsConfig {
  readonly servers: readonly UpstreamServer[]
  /** Transparent modes: forward to the server that the client asked. */
  readonly originalDestination: boolean
  /** Servers that may teach addresses; empty: `servers`. */
  readonly trusted: readonly Prefix[]
  /** The treatment of queries to other servers. */
  readonly untrusted: ConfigKeys['upstreams']['untrusted']
  /** For the whole query, all attempts. */
  readonly timeoutMs: number
  readonly attempts: number
}

/** `system`: the servers of resolv.conf. upstreams.ts resolves them with a function of the daemon. */
export type UpstreamServer =
  | { readonly kind: 'system'; readonly position: Position }
  | { readonly kind: 'address'; readonly address: SocketAddress; readonly position: Position }

export type DatapathConfig = {
  /** Flows open before an endpoint was first enforced pass for so long. */
  readonly adoptExistingMs: number
} & (
  | {
      readonly kind: 'memory' | 'nftables'
      /** Where the eBPF datapath would have its pins, and may have left some. */
      readonly pinPath?: string
    }
  | {
      readonly kind: 'ebpf'
      readonly pinPath: string
      /** How often the kernel's maps are compared and repaired. */
      readonly verifyMs: number
    }
)

/** Flows kept outside of the process. */
export interface FlowsConfig {
  readonly keepMs: number
  /** Octets of all files. */
  readonly maxOctets: number
  readonly outputs: ConfigKeys['flows']['output']
}

export interface DnsConfig {
  readonly denyResponse: DnsKeys['deny-response']
  /** For endpoints without DNS rules. */
  readonly withoutRules: DnsKeys['without-rules']
  readonly hold: { readonly limitMs: number; readonly onLimit: DnsKeys['hold']['on-limit'] }
  readonly onDegraded: DnsKeys['on-degraded']
  /** The names of an answer that selectors match. */
  readonly cnameMatch: DnsKeys['cname-match']
  /** Address hints in SVCB and HTTPS records. */
  readonly svcb: DnsKeys['svcb']
  /** Guarded addresses in answers. */
  readonly guard: DnsKeys['guard']
  readonly minTtlMs: number
  readonly maxTtlMs: number
  readonly graceAfterTtlMs: number
  readonly tcpIdleMs: number
  readonly udpIdleMs: number
  /** Addresses that never get labels from answers, besides those of docs/spec/semantics 4; the private ranges among them with `guard-private`. */
  readonly protectedPrefixes: readonly Prefix[]
  /** Whether the exact names of policies are asked before the first query. */
  readonly prewarm: boolean
}

export type LogLevel = ConfigKeys['log']['level']
