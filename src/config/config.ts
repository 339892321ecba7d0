// The config as the program reads it: checked, frozen, in plain types. Made only by config/load.ts from the
// file's keys (config/schema.ts); keys whose feature isn't built have no field here. Durations are
// milliseconds, sizes octets. Relative paths are as written: relative to the working directory.

import type { Position } from '../core/errors.ts'
import type { Prefix } from '../core/ip.ts'
import type { Limits } from '../core/limits.ts'
import type { SocketAddress } from '../core/socket-address.ts'
import type { LabelSelector } from '../policy/rule.ts'

export interface Config {
  /** The file it came from; `built-in` for the defaults. */
  readonly file: string
  readonly listeners: readonly ListenerConfig[]
  readonly upstreams: UpstreamsConfig
  readonly policies: { readonly paths: readonly PlacedPath[]; readonly watch: boolean }
  readonly endpoints: { readonly files: readonly PlacedPath[] }
  readonly resources: { readonly files: readonly PlacedPath[] }
  /** What an endpoint may do that no policy puts into default deny. */
  readonly defaultEgress: 'allow' | 'audit' | 'deny'
  readonly audit: { readonly node: boolean; readonly endpoints: readonly LabelSelector[] }
  readonly datapath: DatapathConfig
  readonly state: { readonly directory: string }
  readonly admin: { readonly socket: string }
  /** `address` without port, as in RFC 5952; port 0 takes a free one. */
  readonly metrics: { readonly address: string; readonly port: number }
  readonly dns: DnsConfig
  readonly limits: Limits
  readonly log: { readonly level: LogLevel; readonly format: 'pretty' | 'json' }
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
  readonly mode: 'explicit'
  readonly position: Position
}

export interface UpstreamsConfig {
  readonly servers: readonly UpstreamServer[]
  /** For the whole query, all attempts. */
  readonly timeoutMs: number
  readonly attempts: number
}

/** `system` is what resolv.conf names; upstreams.ts resolves it with a function that the daemon gives. */
export type UpstreamServer =
  | { readonly kind: 'system'; readonly position: Position }
  | { readonly kind: 'address'; readonly address: SocketAddress; readonly position: Position }

export type DatapathConfig =
  { readonly kind: 'memory' } | { readonly kind: 'ebpf'; readonly pinPath: string }

export interface DnsConfig {
  readonly denyResponse: 'refused' | 'nxdomain' | 'nodata' | 'drop'
  /** Endpoints none of whose rules has DNS rules. */
  readonly withoutRules: 'allow' | 'deny'
  readonly hold: { readonly limitMs: number; readonly onLimit: 'servfail' | 'drop' | 'release' }
  readonly onDegraded: 'release' | 'servfail'
  readonly minTtlMs: number
  readonly maxTtlMs: number
  readonly graceAfterTtlMs: number
  /** Addresses that never get labels from answers, besides those of SEMANTICS 4. */
  readonly protectedPrefixes: readonly Prefix[]
}

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal'
