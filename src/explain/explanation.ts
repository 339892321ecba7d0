// What `explain` is asked and what it answers: the form that the command line prints, the daemon sends and
// tests of policies compare. Plain values.

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

/** Who asks: an endpoint that policies are in force for. */
export type Asker = Pick<Endpoint, 'id' | 'labels' | 'hook'> & {
  /** Why what would be denied passes; undefined when it doesn't. */
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
  /** What it lacks, as a sentence without full stop. */
  readonly missing: string
}

export interface Explanation {
  readonly verdict: ExplainedVerdict
  /** One sentence without full stop. */
  readonly reason: string
  /** Every rule that made the verdict, of `audit` those that would deny; none: a default did. */
  readonly rules: readonly ExplainedRule[]
  /** What of the endpoint's policies selects the peer, or matches the name asked; whatever the port. */
  readonly selectors: readonly string[]
  /** Numbers by which policy looked the peer up. */
  readonly identities: readonly number[]
  /** Labels of the peer. */
  readonly labels: readonly string[]
  /** What holds for what no rule speaks of, the policies that turned default deny on, and those that would were they not audited. */
  readonly default: {
    readonly egress: DefaultEgress
    readonly policies: readonly string[]
    readonly audited: readonly string[]
  }
  /** What lets pass what no rule allows, or is denied; null when it is allowed, and when no rule is near. */
  readonly nearest: NearestRule | null
  /** What else one should know. */
  readonly notes: readonly string[]
}
