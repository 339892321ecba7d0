// What policy documents say about answers in place of the configuration, by annotations (`namegate.io/min-ttl`,
// `…/grace-after-ttl`, `…/cname-match`, `…/svcb`): for the endpoints that a document selects and the names that its `toFQDNs` match. A document
// without them stands for the configuration. Where documents that match a name differ: the longest times; names of a
// chain are matched when one of them wants it; of `svcb` strip before pass before learn, which gives the least.
// Made for endpoints some of whose documents have such annotations; those of others cost nothing. `read` is on the packet
// path: a match of the name, nothing allocated.

import { IdList } from '../../core/tables/id-list.ts'
import { PatternIndex } from '../match/pattern-index.ts'
import type { AnswerOverrides, Policy } from '../rule.ts'

/** What holds for a name. */
export interface AnswerDefaults {
  /** Seconds. */
  readonly minTtl: number
  readonly grace: number
  readonly cnameMatch: 'question' | 'chain'
  readonly svcb: 'learn' | 'strip' | 'pass'
}

const NOTHING: AnswerOverrides = {}

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

  /** Writes what holds for the wire name into `out`; `defaults` where no document matches it. */
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

/** Undefined when none of the policies has annotations about answers. */
export function answerRulesOf(policies: readonly Policy[]): AnswerRules | undefined {
  return policies.some(({ answers }) => answers !== undefined)
    ? new AnswerRules(policies)
    : undefined
}
