// Defines the configuration that the program reads: checked and frozen. The types of its fields are inferred from the schema of the file
// (schema.ts), which documents them. Durations are milliseconds, sizes are octets. Paths start at the folder of the file (placed.ts).

import type { Position } from '../core/errors.ts'
import type { ConfigValues } from './schema.ts'

type Values = Immutable<ConfigValues>
type Placed = { readonly position: Position }

export interface Config extends Omit<
  Values,
  'listeners' | 'upstreams' | 'policies' | 'endpoints' | 'resources'
> {
  /** The path of the file; `built-in` for the default configuration. */
  readonly file: string
  readonly listeners: readonly ListenerConfig[]
  readonly upstreams: Omit<Values['upstreams'], 'servers'> & {
    readonly servers: readonly UpstreamServer[]
  }
  readonly policies: PoliciesConfig
  readonly endpoints: Omit<Values['endpoints'], 'files'> & { readonly files: readonly PlacedPath[] }
  readonly resources: { readonly files: readonly PlacedPath[] }
}

/** A listener for UDP and TCP at one port. Port 0 takes a free port. Without address: all addresses of the node, IPv4 and IPv6. */
export type ListenerConfig = Values['listeners'][number] & Placed
export type ListenerMode = ListenerConfig['mode']

/** A server. `system` means the servers of resolv.conf; the daemon resolves them (upstreams.ts). */
export type UpstreamServer = Values['upstreams']['servers'][number] & Placed

export type PoliciesConfig = Omit<Values['policies'], 'paths'> & {
  readonly paths: readonly PlacedPath[]
}

/** A path with its position in the configuration file, for faults such as a missing file. */
export interface PlacedPath extends Placed {
  readonly path: string
}

type Immutable<Value> = Value extends Uint8Array | ReadonlyMap<unknown, unknown>
  ? Value
  : Value extends object
    ? { readonly [Key in keyof Value]: Immutable<Value[Key]> }
    : Value
