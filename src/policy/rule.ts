// The one internal rule type. Every form of policy (CiliumNetworkPolicy, NetworkPolicy, allow-lists) becomes this type, and the
// compiler reads this type alone. Plain readonly values, without YAML and with one position each.

import type { Position } from '../core/errors.ts'
import type { Prefix } from '../core/ip.ts'
import type { PortRange } from '../core/protocol.ts'
import type { Pattern } from './match/pattern.ts'

export type LabelOperator = 'In' | 'NotIn' | 'Exists' | 'DoesNotExist'

/** One condition on a key. `NotIn` holds as well where the key is not there, as in Kubernetes. */
export interface LabelExpression {
  readonly key: string
  readonly operator: LabelOperator
  /** At least one for `In` and `NotIn`, none for the others. */
  readonly values: readonly string[]
}

/** A selector over labels: every entry must hold; a key without a source matches any source. */
export interface LabelSelector {
  /** Key as written (`app`, `k8s:app`, `k8s.app` is not a source) to wanted value. Empty: everything. */
  readonly matchLabels: ReadonlyMap<string, string>
  /** Absent when there are none. */
  readonly matchExpressions?: readonly LabelExpression[]
}

export type Entity = 'host' | 'cluster' | 'world' | 'world-ipv4' | 'world-ipv6' | 'all' | 'none'

export type PeerSelector =
  | { readonly kind: 'fqdn'; readonly pattern: Pattern }
  | { readonly kind: 'cidr'; readonly prefix: Prefix; readonly except: readonly Prefix[] }
  | { readonly kind: 'entity'; readonly entity: Entity }
  /** Known endpoints and external resources by their labels; the policy's own namespace is among the conditions. */
  | { readonly kind: 'endpoints'; readonly selector: LabelSelector }

/** Peers of a rule: any peer at all, or the union of the selectors (an empty list selects nothing). */
export type Peers =
  | { readonly kind: 'any' }
  | { readonly kind: 'selectors'; readonly selectors: readonly PeerSelector[] }

/** A port by name: what it is says the endpoints and resources that have it (named-ports.ts). */
export interface NamedPort {
  readonly name: string
  /** IP protocols it may be of. */
  readonly protocols: readonly number[]
}

/** One `toPorts` entry. With `dns` it permits asking through the proxy and opens nothing in the datapath. */
export interface PortRule {
  readonly ports: readonly PortRange[]
  /** Absent when there are none. Whoever compiles policies has put their numbers into `ports` before. */
  readonly named?: readonly NamedPort[]
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

export type PolicyKind =
  'CiliumNetworkPolicy' | 'CiliumClusterwideNetworkPolicy' | 'NetworkPolicy' | 'AllowList'

/** What a document says about answers for its names, in place of the configuration; absent: nothing. */
export interface AnswerOverrides {
  /** Seconds. */
  readonly minTtl?: number
  readonly grace?: number
  readonly cnameMatch?: 'question' | 'chain'
  readonly svcb?: 'learn' | 'strip' | 'pass'
}

/** One policy document (or one entry of its `specs`), or one allow-list. */
export interface Policy {
  /** Of an allow-list its file's name without `.allow`. */
  readonly name: string
  /** Undefined for a clusterwide policy and an allow-list. */
  readonly namespace: string | undefined
  readonly kind: PolicyKind
  readonly selector: LabelSelector
  readonly rules: readonly Rule[]
  /** Whether it turns default deny on for the endpoints it selects (docs/spec/semantics 2). */
  readonly defaultDeny: boolean
  /** It takes nothing away, neither by default deny nor by deny rules: what it would deny passes and is reported. Absent: no. */
  readonly audited?: true
  /** Its names label guarded addresses too, those that documents can open (names/guard.ts). Absent: no. */
  readonly allowsGuarded?: true
  /** The document has an ingress half, which nothing enforces (`policies.ingress: ignore`); absent: it has none. */
  readonly halfEnforced?: true
  /** Its annotations about answers (answer-rules.ts); absent: it has none. */
  readonly answers?: AnswerOverrides
  readonly position: Position
}
