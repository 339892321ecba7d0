// Policy documents as objects, for programs that make them: the fields of CiliumNetworkPolicy and
// CiliumClusterwideNetworkPolicy that namegate takes. The reader (policy/load/load.ts) checks them again and says
// what is wrong; these types only help who writes them. A field that is not here can be given as YAML text.

/** A name, or a pattern of names; a selector has exactly one of the two. */
export interface NameSelector {
  readonly matchName?: string
  /** `*` inside a label, `**.` at the start for one or more whole labels. */
  readonly matchPattern?: string
}

/** One condition on a label; NotIn holds as well where the key is not there. */
export interface LabelExpression {
  readonly key: string
  readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist'
  /** For In and NotIn. */
  readonly values?: readonly string[]
}

/** Labels by key, or by `source:key`; no source is any source. `{}` is everything. */
export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>
  readonly matchExpressions?: readonly LabelExpression[]
}

export interface PortSpec {
  /** 0 is every port of the protocol; or the name of one. */
  readonly port: string | number
  readonly endPort?: number
  /** Left out, as ANY: TCP, UDP and SCTP. */
  readonly protocol?: 'TCP' | 'UDP' | 'SCTP' | 'ANY'
}

export interface PortRule {
  readonly ports?: readonly PortSpec[]
  /** What may be asked through the proxy; opens nothing in the datapath. */
  readonly rules?: { readonly dns?: readonly NameSelector[] }
}

export type Entity = 'host' | 'cluster' | 'world' | 'world-ipv4' | 'world-ipv6' | 'all' | 'none'

/** Peers by address and label; in `egressDeny` these are all there are. */
export interface EgressDenyRule {
  readonly toCIDR?: readonly string[]
  readonly toCIDRSet?: readonly { readonly cidr: string; readonly except?: readonly string[] }[]
  readonly toEntities?: readonly Entity[]
  /** Known endpoints and resources; of the policy's own namespace when nothing is said of namespaces. */
  readonly toEndpoints?: readonly LabelSelector[]
  readonly toPorts?: readonly PortRule[]
}

export interface EgressRule extends EgressDenyRule {
  readonly toFQDNs?: readonly NameSelector[]
}

export interface PolicySpec {
  /** Endpoints that the policy applies to; `{}` is all of them. */
  readonly endpointSelector: LabelSelector
  readonly egress?: readonly EgressRule[]
  readonly egressDeny?: readonly EgressDenyRule[]
  readonly enableDefaultDeny?: { readonly egress?: boolean }
  readonly description?: string
}

/** One policy. */
export interface PolicyDocument {
  readonly apiVersion: 'cilium.io/v2'
  readonly kind: 'CiliumNetworkPolicy' | 'CiliumClusterwideNetworkPolicy'
  readonly metadata: {
    readonly name: string
    /** `default` when left out. */
    readonly namespace?: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly spec?: PolicySpec
  readonly specs?: readonly PolicySpec[]
}
