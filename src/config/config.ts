// The config as the program reads it: checked, frozen, in plain types. Made only by config/load.ts from the
// file's keys (config/schema.ts); keys whose feature isn't built have no field here. Durations are
// milliseconds, sizes octets. Relative paths are relative to the folder of the file.

import type { Position } from '../core/errors.ts'
import type { Prefix } from '../core/ip.ts'
import type { Limits } from '../core/limits.ts'
import type { SocketAddress } from '../core/socket-address.ts'
import type { DefaultEgress } from '../policy/compile/default-egress.ts'
import type { LabelSelector } from '../policy/rule.ts'

export interface Config {
  /** The file it came from; `built-in` for the defaults. */
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
  /** What an endpoint may do that no policy puts into default deny. */
  readonly defaultEgress: DefaultEgress
  /** Whom an address that one endpoint learned is known to: all of the node, or that endpoint alone. */
  readonly learning: 'node' | 'endpoint'
  readonly audit: { readonly node: boolean; readonly endpoints: readonly LabelSelector[] }
  readonly datapath: DatapathConfig
  readonly state: { readonly directory: string; readonly restoreGraceMs: number }
  /** What happens when sources of policies or endpoints are silent for longer (src/sources/source-ages.ts). */
  readonly sources: {
    readonly maxAgeMs: number
    readonly onMaxAge: 'keep' | 'audit' | 'deny'
  }
  readonly flows: FlowsConfig
  readonly admin: { readonly socket: string }
  /** `address` without port, as in RFC 5952; port 0 takes a free one. */
  readonly metrics: { readonly address: string; readonly port: number }
  readonly dns: DnsConfig
  readonly limits: Limits
  readonly log: { readonly level: LogLevel; readonly format: 'pretty' | 'json' }
}

export interface PoliciesConfig {
  readonly paths: readonly PlacedPath[]
  readonly watch: boolean
  /** Labels of the endpoints that allow-lists are for; empty: all. */
  readonly allowListEndpoints: ReadonlyMap<string, string>
  readonly ingress: 'error' | 'ignore'
  readonly unsupportedFields: 'error' | 'warn'
  /** CIDR rules also select known endpoints, resources and the node. */
  readonly cidrMatchesEndpoints: boolean
}

/** A path and where it's written, for faults such as a path that isn't there. */
export interface PlacedPath {
  readonly path: string
  readonly position: Position
}

export interface ListenerConfig {
  /** Undefined: every address of the node, both families. */
  readonly address: Prefix | undefined
  /** Port 0 takes a free one. UDP and TCP both. */
  readonly port: number
  readonly mode: ListenerMode
  /** Of mode tproxy: names or beginnings such as `lxc*`; empty: those of the endpoints. */
  readonly interfaces: readonly string[]
  readonly position: Position
}

export type ListenerMode = 'explicit' | 'tproxy' | 'redirect'

export interface InterceptConfig {
  /** Whether the daemon puts the rules in when it starts. */
  readonly onStart: boolean
  /** What an orderly stop leaves: rules that drop, or none. */
  readonly onExit: 'closed' | 'open'
  /** Mark of our own packets, 1..0xffffffff. */
  readonly mark: number
  /** Routing table for TPROXY. */
  readonly table: number
}

export interface UnknownClientsConfig {
  /** How long a query waits for its endpoint to become known. */
  readonly waitMs: number
  readonly onTimeout: 'refuse' | 'allow-unmanaged'
}

export interface UpstreamsConfig {
  readonly servers: readonly UpstreamServer[]
  /** Transparent modes: forward to the server that the client asked. */
  readonly originalDestination: boolean
  /** Servers that may teach addresses; empty: `servers`. */
  readonly trusted: readonly Prefix[]
  /** Queries to a server that is not trusted. */
  readonly untrusted: 'refuse' | 'pass'
  /** For the whole query, all attempts. */
  readonly timeoutMs: number
  readonly attempts: number
}

/** `system` is what resolv.conf names; upstreams.ts resolves it with a function that the daemon gives. */
export type UpstreamServer =
  | { readonly kind: 'system'; readonly position: Position }
  | { readonly kind: 'address'; readonly address: SocketAddress; readonly position: Position }

/** Where bpffs is mounted as a rule. */
export const USUAL_BPFFS = '/sys/fs/bpf'

/** The first name of a path inside a bpffs that has a dot, which bpffs takes none of; undefined: there is none. */
export function dottedName(path: string): string | undefined {
  return path.split('/').find((name) => name.includes('.'))
}

/** Folder of bpffs for the pinned maps where `datapath.ebpf.pin-path` says nothing. */
export const DEFAULT_PIN_PATH = '/sys/fs/bpf/namegate'

export type DatapathConfig = {
  /** Flows open before an endpoint was first enforced pass for so long. */
  readonly adoptExistingMs: number
} & (
  | {
      readonly kind: 'memory' | 'nftables'
      /** Where eBPF would have its pins, and may have had them. */
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
  readonly outputs: readonly ('file' | 'stdout' | 'syslog')[]
}

export interface DnsConfig {
  readonly denyResponse: 'refused' | 'nxdomain' | 'nodata' | 'drop'
  /** Endpoints none of whose rules has DNS rules. */
  readonly withoutRules: 'allow' | 'deny'
  readonly hold: { readonly limitMs: number; readonly onLimit: 'servfail' | 'drop' | 'release' }
  readonly onDegraded: 'release' | 'servfail' | 'strip-addresses'
  /** Which names of an answer selectors are matched with. */
  readonly cnameMatch: 'question' | 'chain'
  /** Address hints in SVCB and HTTPS records. */
  readonly svcb: 'learn' | 'strip' | 'pass'
  /** Guarded addresses in answers. */
  readonly guard: 'pass' | 'strip'
  readonly minTtlMs: number
  readonly maxTtlMs: number
  readonly graceAfterTtlMs: number
  readonly tcpIdleMs: number
  readonly udpIdleMs: number
  /** Addresses that never get labels from answers, besides those of docs/spec/semantics 4; the private ranges among them with `guard-private`. */
  readonly protectedPrefixes: readonly Prefix[]
  /** Ask the exact names of policies before the first query. */
  readonly prewarm: boolean
}

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal'
