// The one internal rule type. Every form of policy (CiliumNetworkPolicy now; NetworkPolicy and
// allow-lists later) becomes this, and only this is compiled. Plain readonly values; no YAML, no text
// positions but the origin's.

import type { Position } from '../core/errors.ts'
import type { Prefix } from '../core/ip.ts'
import type { PortRange } from '../core/protocol.ts'
import type { Pattern } from './pattern.ts'

/** A selector over labels: each entry must be there; a key without a source matches any source. */
export interface LabelSelector {
  /** Key as written (`app`, `k8s:app`, `k8s.app` is not a source) to wanted value. Empty: everything. */
  readonly matchLabels: ReadonlyMap<string, string>
}

export type Entity = 'host' | 'cluster' | 'world' | 'world-ipv4' | 'world-ipv6' | 'all' | 'none'

export type PeerSelector =
  | { readonly kind: 'fqdn'; readonly pattern: Pattern }
  | { readonly kind: 'cidr'; readonly prefix: Prefix; readonly except: readonly Prefix[] }
  | { readonly kind: 'entity'; readonly entity: Entity }

/** Peers of a rule: any peer at all, or the union of the selectors (an empty list selects nothing). */
export type Peers =
  | { readonly kind: 'any' }
  | { readonly kind: 'selectors'; readonly selectors: readonly PeerSelector[] }

/** One `toPorts` entry. With `dns` it permits asking through the proxy and opens nothing in the datapath. */
export interface PortRule {
  readonly ports: readonly PortRange[]
  /** Names that may be asked; undefined: no DNS rules here. */
  readonly dns: readonly Pattern[] | undefined
}

export interface Rule {
  readonly action: 'allow' | 'deny'
  readonly peers: Peers
  /** Undefined: every port and protocol. */
  readonly toPorts: readonly PortRule[] | undefined
  /** Where it was written. */
  readonly position: Position
}

/** One policy document (or one entry of its `specs`). */
export interface Policy {
  readonly name: string
  /** Undefined for a clusterwide policy. */
  readonly namespace: string | undefined
  readonly kind: 'CiliumNetworkPolicy' | 'CiliumClusterwideNetworkPolicy'
  readonly selector: LabelSelector
  readonly rules: readonly Rule[]
  /** Whether it turns default deny on for the endpoints it selects (SEMANTICS 2). */
  readonly defaultDeny: boolean
  readonly position: Position
}
