// This file declares the internal type of policies and rules. The loader turns every form of policy (CiliumNetworkPolicy,
// NetworkPolicy, ClusterNetworkPolicy, allow-lists) into this type, and the compiler reads only this type. All values are plain
// and readonly. Policies and rules have a position.

import type { Position } from '../core/errors.ts'
import type { Prefix } from '../core/ip.ts'
import type { PortRange } from '../core/protocol.ts'
import type { Pattern } from './match/pattern.ts'

export type LabelOperator = 'In' | 'NotIn' | 'Exists' | 'DoesNotExist'

/** One condition on a key. `NotIn` also holds if the key is absent, as in Kubernetes. */
export interface LabelExpression {
  readonly key: string
  readonly operator: LabelOperator
  /** At least one value for `In` and `NotIn`, no value for the other operators. */
  readonly values: readonly string[]
}

/** A selector over labels. Every condition must hold. A key without a label source matches labels of any source. */
export interface LabelSelector {
  /** The wanted value of each key. Keys are as written: `app` or `k8s:app`. (`k8s.app` has no source.) An empty map matches everything. */
  readonly matchLabels: ReadonlyMap<string, string>
  /** Absent if there are none. */
  readonly matchExpressions?: readonly LabelExpression[]
}

/** The values of `toEntities`. Each entity means one or more classes of addresses; `none` means no address. */
export type Entity = 'host' | 'cluster' | 'world' | 'world-ipv4' | 'world-ipv6' | 'all' | 'none'

export type PeerSelector =
  | { readonly kind: 'fqdn'; readonly pattern: Pattern }
  | { readonly kind: 'cidr'; readonly prefix: Prefix; readonly except: readonly Prefix[] }
  | { readonly kind: 'entity'; readonly entity: Entity }
  /** Selects known endpoints and resources by their labels. The policy's own namespace is one of the conditions. */
  | { readonly kind: 'endpoints'; readonly selector: LabelSelector }

/** The peers of a rule: any peer, or every peer that at least one selector selects. An empty list selects nothing. */
export type Peers =
  | { readonly kind: 'any' }
  | { readonly kind: 'selectors'; readonly selectors: readonly PeerSelector[] }

/** A port with a name. Endpoints and resources define the number of the name (named-ports.ts). */
export interface NamedPort {
  readonly name: string
  /** The IP protocols that the rule covers. */
  readonly protocols: readonly number[]
}

/** One item of `toPorts`. With `dns`, it permits questions through the proxy and opens nothing in the datapath. */
export interface PortRule {
  readonly ports: readonly PortRange[]
  /** Absent without named ports. PortResolver adds their numbers to `ports` before policies are compiled. */
  readonly named?: readonly NamedPort[]
  /** The names that can be asked; undefined without DNS rules. */
  readonly dns: readonly Pattern[] | undefined
}

/** `pass`: the rule ends its tier without a verdict, and the next tier decides. Only rules of a ClusterNetworkPolicy pass. */
export type RuleAction = 'allow' | 'deny' | 'pass'

/** One rule of a policy: which peers, and which of their ports, it allows, denies or passes. */
export interface Rule {
  readonly action: RuleAction
  /** The name that the author gave to the rule. Only rules of a ClusterNetworkPolicy have one. */
  readonly name?: string
  readonly peers: Peers
  /** Undefined: every port and protocol. */
  readonly toPorts: readonly PortRule[] | undefined
  /** The place of the rule in its file. */
  readonly position: Position
}

export type PolicyKind =
  | 'CiliumNetworkPolicy'
  | 'CiliumClusterwideNetworkPolicy'
  | 'NetworkPolicy'
  | 'ClusterNetworkPolicy'
  | 'AllowList'

/** The settings of a document for answers to its names. They replace settings of the configuration. An absent field replaces nothing. */
export interface AnswerOverrides {
  /** In seconds. */
  readonly minTtl?: number
  /** In seconds. */
  readonly grace?: number
  readonly cnameMatch?: 'question' | 'chain'
  readonly svcb?: 'learn' | 'strip' | 'pass'
}

/** Where a ClusterNetworkPolicy stands in the order of evaluation (docs/spec/semantics 2 "Tiers"). */
export interface Tier {
  /** `Admin` decides before all other policies, `Baseline` after them. */
  readonly name: 'Admin' | 'Baseline'
  /** 0 to 1000. The lowest decides first. */
  readonly priority: number
}

/** One policy document, one item of its `specs`, or one allow-list. */
export interface Policy {
  /** For an allow-list, the name of its file without `.allow`. */
  readonly name: string
  /** Undefined for a clusterwide policy and an allow-list. */
  readonly namespace: string | undefined
  readonly kind: PolicyKind
  readonly selector: LabelSelector
  readonly rules: readonly Rule[]
  /** Absent for all kinds but ClusterNetworkPolicy. The first rule that matches decides, so the order of `rules` counts. */
  readonly tier?: Tier
  /** True if the policy turns default deny on for the endpoints that it selects (docs/spec/semantics 2). */
  readonly defaultDeny: boolean
  /** True if the policy is audited. Then it denies nothing, neither by default deny nor by deny rules, and reports what it would deny. */
  readonly audited?: true
  /** True if its names also label guarded addresses, as far as documents can open these (names/guard.ts). */
  readonly allowsGuarded?: true
  /** True if the document has rules for ingress, which namegate does not enforce (`policies.ingress: ignore`). */
  readonly halfEnforced?: true
  /** The annotations of the document about answers (answer-rules.ts); absent if it has none. */
  readonly answers?: AnswerOverrides
  readonly position: Position
}
