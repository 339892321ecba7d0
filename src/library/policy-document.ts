// Types of policy documents as objects, for programs that make policies: the fields of CiliumNetworkPolicy and
// CiliumClusterwideNetworkPolicy that namegate takes. These types help the author. The loader (policy/load/load.ts) checks the documents
// again and reports faults. YAML text can have fields that these types do not have.

/** A name or a pattern of names. Exactly one of the two fields must be set. */
export interface NameSelector {
  readonly matchName?: string
  /** `*` stands for characters of one DNS label. `**.` at the start stands for one or more whole DNS labels. */
  readonly matchPattern?: string
}

/** One condition on a label. NotIn also holds if the endpoint has no label with the key. */
export interface LabelExpression {
  readonly key: string
  readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist'
  /** The values for In and NotIn. */
  readonly values?: readonly string[]
}

/** Selects by labels, by `key` or `source:key`. A key without source matches labels of any source. `{}` selects everything. */
export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>
  readonly matchExpressions?: readonly LabelExpression[]
}

export interface PortSpec {
  /** The number or name of a port. 0 is every port of the protocol. */
  readonly port: string | number
  readonly endPort?: number
  /** Without protocol, as with ANY: TCP, UDP and SCTP. */
  readonly protocol?: 'TCP' | 'UDP' | 'SCTP' | 'ANY'
}

export interface PortRule {
  readonly ports?: readonly PortSpec[]
  /** The names that can be asked through the proxy. These rules allow no packets. */
  readonly rules?: { readonly dns?: readonly NameSelector[] }
}

export type Entity = 'host' | 'cluster' | 'world' | 'world-ipv4' | 'world-ipv6' | 'all' | 'none'

/** Peers by address and label. An `egressDeny` rule can have only these peers. */
export interface EgressDenyRule {
  readonly toCIDR?: readonly string[]
  readonly toCIDRSet?: readonly { readonly cidr: string; readonly except?: readonly string[] }[]
  readonly toEntities?: readonly Entity[]
  /** Known endpoints and resources. Without a namespace in the selector, they must be in the policy's own namespace. */
  readonly toEndpoints?: readonly LabelSelector[]
  readonly toPorts?: readonly PortRule[]
}

export interface EgressRule extends EgressDenyRule {
  readonly toFQDNs?: readonly NameSelector[]
}

export interface PolicySpec {
  /** The endpoints to which the policy applies. `{}` selects all endpoints. */
  readonly endpointSelector: LabelSelector
  readonly egress?: readonly EgressRule[]
  readonly egressDeny?: readonly EgressDenyRule[]
  readonly enableDefaultDeny?: { readonly egress?: boolean }
  readonly description?: string
}

/** One policy, as a document. */
export interface PolicyDocument {
  readonly apiVersion: 'cilium.io/v2'
  readonly kind: 'CiliumNetworkPolicy' | 'CiliumClusterwideNetworkPolicy'
  readonly metadata: {
    readonly name: string
    /** The namespace. `default` when it is left out. */
    readonly namespace?: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly spec?: PolicySpec
  readonly specs?: readonly PolicySpec[]
}
