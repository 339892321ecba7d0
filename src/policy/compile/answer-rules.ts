// AnswerRules finds the settings for answers that policy documents make by annotations, in place of the configuration:
// `namegate.io/min-ttl`, `…/grace-after-ttl`, `…/cname-match` and `…/svcb`. The settings of a document hold for the endpoints that the
// document selects, and for the names that its `toFQDNs` match. If a matching document has no annotation, the configuration is its setting.
// If several matching documents differ:
//   - the longest `min-ttl` and the longest `grace-after-ttl` win;
//   - `cname-match: chain` wins over `question`;
//   - `svcb: strip` wins over `pass`, and `pass` over `learn`, so that the client receives the least.
// An endpoint without such annotations in its documents has no AnswerRules. `read` is called for each message: it matches the name once
// and allocates nothing.

import { IdList } from '../../core/tables/id-list.ts'
import { PatternIndex } from '../match/pattern-index.ts'
import type { AnswerOverrides, Policy } from '../rule.ts'

/** The settings for a name. */
export interface AnswerDefaults {
  /** `minTtl` and `grace` are in seconds. */
  readonly minTtl: number
  readonly grace: number
  readonly cnameMatch: 'question' | 'chain'
  readonly svcb: 'learn' | 'strip' | 'pass'
}

const NOTHING: AnswerOverrides = {}

/** The settings of the documents that select one endpoint. */
export class AnswerRules {
  readonly #index = new PatternIndex()
  readonly #overrides: AnswerOverrides[] = []
  readonly #matched = new IdList()

  constructor(policies: readonly Policy[]) {
    policies.forEach((policy, id) => {
      this.#overrides.push(policy.answers ?? NOTHING)
      const seen = new Set<string>()
      for (const { peers } of policy.rules) {
        if (peers.kind === 'any') continue
        for (const peer of peers.selectors) {
          if (peer.kind !== 'fqdn' || seen.has(peer.pattern.text)) continue
          seen.add(peer.pattern.text)
          this.#index.add(peer.pattern, id)
        }
      }
    })
  }

  /** Writes the settings for `name` (wire format) into `out`. If no document matches the name, writes `defaults`. */
  read(name: Uint8Array, defaults: AnswerDefaults, out: Mutable<AnswerDefaults>): void {
    this.#matched.clear()
    const count = this.#index.match(name, 0, this.#matched)
    const first = this.#at(0, count)
    out.minTtl = first.minTtl ?? defaults.minTtl
    out.grace = first.grace ?? defaults.grace
    out.cnameMatch = first.cnameMatch ?? defaults.cnameMatch
    out.svcb = first.svcb ?? defaults.svcb
    for (let i = 1; i < count; i++) {
      const { minTtl, grace, cnameMatch, svcb = defaults.svcb } = this.#at(i, count)
      out.minTtl = Math.max(out.minTtl, minTtl ?? defaults.minTtl)
      out.grace = Math.max(out.grace, grace ?? defaults.grace)
      if ((cnameMatch ?? defaults.cnameMatch) === 'chain') out.cnameMatch = 'chain'
      if (svcb === 'strip' || (svcb === 'pass' && out.svcb === 'learn')) out.svcb = svcb
    }
  }

  #at(i: number, count: number): AnswerOverrides {
    return i < count ? (this.#overrides[this.#matched.items[i]!] ?? NOTHING) : NOTHING
  }
}

export type Mutable<Type> = { -readonly [Key in keyof Type]: Type[Key] }

/** Returns undefined when none of the policies has annotations about answers. */
export function answerRulesOf(policies: readonly Policy[]): AnswerRules | undefined {
  return policies.some(({ answers }) => answers !== undefined)
    ? new AnswerRules(policies)
    : undefined
}
