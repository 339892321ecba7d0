// The questions and answers of `explain`, as plain values: the form that the command line prints, the daemon sends and policy tests
// compare.

import type { Endpoint } from '../endpoints/registry.ts'
import type { DefaultEgress } from '../policy/compile/default-egress.ts'
import type { Prefix } from '../core/ip.ts'
import type { DnsProtocol } from '../core/protocol.ts'

export type Question =
  /** May it ask this name over that protocol; of the configured servers, or of one that it chose. */
  | {
      readonly kind: 'ask'
      /** Wire form in lower case. */
      readonly name: Uint8Array
      readonly protocol: DnsProtocol
      readonly server?: { readonly address: Prefix; readonly port: number }
    }
  /** May it connect to the address, or to what the name resolves to; with both, to the address as the name's. */
  | {
      readonly kind: 'connect'
      readonly name?: Uint8Array
      readonly address?: Prefix
      readonly protocol: number
      readonly port: number
    }

/** The endpoint in question. Policies are in force for it. */
export type Asker = Pick<Endpoint, 'id' | 'labels' | 'hook'> & {
  /** The reason why denied traffic passes; undefined when it does not. */
  readonly audited: string | undefined
}

export type ExplainedVerdict = 'allow' | 'deny' | 'audit'

/** A rule as people find it. */
export interface ExplainedRule {
  /** `namespace/name`, or the name alone of a clusterwide policy. */
  readonly policy: string
  readonly file: string
  readonly line: number
  readonly action: 'allow' | 'deny'
}

/** A rule that nearly allows it. */
export interface NearestRule {
  readonly policy: string
  readonly file: string
  readonly line: number
  /** The missing part, as a sentence without full stop. */
  readonly missing: string
}

export interface Explanation {
  readonly verdict: ExplainedVerdict
  /** One sentence without full stop. */
  readonly reason: string
  /** Every rule behind the verdict; for `audit` those that would deny. Empty: a default decided. */
  readonly rules: readonly ExplainedRule[]
  /** The selectors of the endpoint's policies that select the peer, or match the name, whatever the port. */
  readonly selectors: readonly string[]
  /** Numbers by which policy looked the peer up. */
  readonly identities: readonly number[]
  /** Labels of the peer. */
  readonly labels: readonly string[]
  /** The default for everything that no rule names, the policies that turned default deny on, and the audited ones that would. */
  readonly default: {
    readonly egress: DefaultEgress
    readonly policies: readonly string[]
    readonly audited: readonly string[]
  }
  /** The nearest rule that would allow it; null when it is allowed, and when no rule is near. */
  readonly nearest: NearestRule | null
  /** Further notes. */
  readonly notes: readonly string[]
}
