// May an endpoint connect: the three keys that a packet is judged by (datapath.ts step 6), asked of the same coverages,
// flattened by the same code, decided by the same ranks as in a policy map. Which rules made the verdict is read from the
// coverages, since of rules that say the same a flattened entry keeps only those of the widest.

import type { Identity } from '../core/ids.ts'
import { coveragesOf } from '../datapath/flat-rules.ts'
import { longestMatch, outcomeOf, type Outcome } from '../datapath/verdict.ts'
import { ANY_IDENTITY } from '../identity/reserved.ts'
import { DEFAULT_ORIGIN } from '../policy/compile/compile.ts'
import { flatten, type Coverage } from '../policy/compile/flatten.ts'
import type { CoreState } from '../enforcement/core-state.ts'
import type { SharedRules } from '../enforcement/shared-rules.ts'
import type { ExplainedRule } from './explanation.ts'
import { keyOf, type Peer } from './peer.ts'
import { explained, rulesOf } from './rules.ts'

export interface Decision {
  readonly verdict: Outcome['verdict']
  readonly rules: readonly ExplainedRule[]
  /** Whether a default is among what made the verdict. */
  readonly byDefault: boolean
  /** Whether what would be denied passes because the policies that deny it are audited. */
  readonly byAudit: boolean
}

export function decide(
  core: CoreState,
  shared: SharedRules,
  peer: Peer,
  protocol: number,
  port: number,
): Decision {
  const keys = new Set<Identity>([keyOf(peer), peer.addressClass, ANY_IDENTITY])
  const coverages = [...keys].map((key) => coveragesOf(shared.rules, key, peer.selectedBy))
  const answers = coverages.map((each) => longestMatch(flatten(each), protocol, port)?.action)
  const { verdict, by } = outcomeOf(answers.map((each) => each ?? 'none'))
  const made = by === 'audit-pass' ? 'audit-deny' : by
  const origins = new Set(
    coverages
      .flat()
      .filter((each) => each.action === made && isIn(each, protocol, port))
      .map(({ origin }) => origin),
  )
  const rules = rulesOf(shared.compiled.policies)
    .filter(({ policy, rule }) => origins.has(core.origins.originOf(policy, rule)))
    .map(explained)
  const byDefault = origins.has(DEFAULT_ORIGIN)
  return { verdict, rules, byDefault, byAudit: verdict === 'audit' && !byDefault }
}

function isIn({ range }: Coverage, protocol: number, port: number): boolean {
  if (range.protocol === 0) return true
  return range.protocol === protocol && range.low <= port && port <= range.high
}
