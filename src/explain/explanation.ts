// This file declares the questions and answers of `explain` as plain values. The command line prints them, the daemon sends them, and
// policy tests compare them.

import type { Endpoint } from '../endpoints/registry.ts'
import type { DefaultEgress } from '../policy/compile/default-egress.ts'
import type { Prefix } from '../core/ip.ts'
import type { DnsProtocol } from '../core/protocol.ts'
import type { RuleAction } from '../policy/rule.ts'

export type Question =
  /** Can the endpoint ask this name over this protocol? The question goes to `server`, or without it to the configured servers. */
  | {
      readonly kind: 'ask'
      /** The name in wire format and lower case. */
      readonly name: Uint8Array
      readonly protocol: DnsProtocol
      readonly server?: { readonly address: Prefix; readonly port: number }
    }
  /** Can the endpoint connect to the address, or to the addresses of the name? With both fields: to the address, learned by the name. */
  | {
      readonly kind: 'connect'
      readonly name?: Uint8Array
      readonly address?: Prefix
      readonly protocol: number
      readonly port: number
    }

/** The endpoint that a question is about. */
export type Asker = Pick<Endpoint, 'id' | 'labels' | 'hook' | 'addresses'> & {
  /** Why denied traffic passes: `the node`, or where the endpoint's audit setting was made. Undefined: denied traffic is dropped. */
  readonly audited: string | undefined
}

export type ExplainedVerdict = 'allow' | 'deny' | 'audit'

/** A rule and its place in a file. */
export interface ExplainedRule {
  /** `namespace/name`, or the name alone for a clusterwide policy. */
  readonly policy: string
  readonly file: string
  readonly line: number
  readonly action: RuleAction
  /** The tier of a ClusterNetworkPolicy, with its priority: `Admin 10`. Absent for all other policies. */
  readonly tier?: string
  /** The name of the rule, if its author gave one. */
  readonly name?: string
}

/** A rule that nearly allows what was asked. */
export interface NearestRule {
  readonly policy: string
  readonly file: string
  readonly line: number
  /** Why the rule does not allow it, as a sentence without a full stop. */
  readonly missing: string
}

/** The answer to a question. */
export interface Explanation {
  readonly verdict: ExplainedVerdict
  /** One sentence without a full stop. */
  readonly reason: string
  /** Every rule behind the verdict. For `audit`: the rules that would deny. Empty if a default decided. */
  readonly rules: readonly ExplainedRule[]
  /** The selectors of the endpoint's policies that select the peer or match the name, whatever their ports. */
  readonly selectors: readonly string[]
  /** The identities of the peer, for which policy was looked up. */
  readonly identities: readonly number[]
  /** The labels of the peer. */
  readonly labels: readonly string[]
  /** The default for everything that no rule names. */
  readonly default: {
    readonly egress: DefaultEgress
    /** The policies that turn default deny on. */
    readonly policies: readonly string[]
    /** The audited policies that would turn default deny on. */
    readonly audited: readonly string[]
  }
  /** The rule that comes nearest to allowing what was asked; null if it is allowed already, or if no rule is near. */
  readonly nearest: NearestRule | null
  /** A line that would allow what was asked, and the allow-list to add it to. Null if a line of an allow-list does not help. */
  readonly add: { readonly file: string; readonly text: string } | null
  /** Further notes, each a sentence without a full stop. */
  readonly notes: readonly string[]
}
