// `lint` finds policies that are valid, but probably not what their author meant. A finding never prevents a policy from being loaded. The
// functions have no side effects.

import type { Fault } from '../core/errors.ts'
import { withoutTiers } from '../policy/compile/dns-tiers.ts'
import type { Policy } from '../policy/rule.ts'
import { lintAliases, type Aliases } from './aliases.ts'
import { compareFindings, type Finding } from './finding.ts'
import { lintNames } from './names.ts'
import { lintDenies, lintRulePeers, lintSelector } from './selection.ts'
import { lintShadows } from './shadow.ts'
import { lintSiblings } from './siblings.ts'
import { lintTiers } from './tiers.ts'
import { lintTransports } from './transports.ts'
import { lintUnasked } from './unasked.ts'
import type { NameList } from './written-names.ts'

export interface LintInput {
  readonly policies: readonly Policy[]
  /** The names in all policy files, as the files write them. */
  readonly names: readonly NameList[]
  /** The labels of each endpoint. Undefined when the endpoints are not known. */
  readonly endpoints: readonly (readonly string[])[] | undefined
  /** The labels of each resource. Peers can select resources as well as endpoints. */
  readonly resources?: readonly (readonly string[])[]
  /** Recorded CNAME chains. Undefined when no chains were recorded. */
  readonly aliases: Aliases | undefined
  /** The key `dns.without-rules`. Undefined when the configuration is not known. */
  readonly withoutRules?: 'allow' | 'deny'
  /** True to report every pattern that has another meaning in some other policy engine, common patterns included. */
  readonly portable: boolean
  /** The policy loader's notes on text that a reader can easily misunderstand. */
  readonly notes: readonly Fault[]
}

/** Returns all findings, sorted by file name, line and column. */
export function lint(input: LintInput): readonly Finding[] {
  const { policies, names, endpoints, resources = [], aliases, withoutRules, notes } = input
  return [
    ...notes.map(readAs),
    ...names.flatMap((list) => [...lintNames(list, input), ...lintSiblings(list)]),
    ...(aliases === undefined ? [] : lintAliases(names, aliases)),
    ...policies.flatMap((policy) => lintSelector(policy, endpoints)),
    ...policies.flatMap(({ rules, tier }) =>
      rules.flatMap((rule) => lintRulePeers(rule, tier !== undefined)),
    ),
    ...(endpoints === undefined ? [] : lintDenies(policies, [...endpoints, ...resources])),
    ...policies.flatMap(lintTransports),
    ...(withoutRules === undefined ? [] : lintUnasked(policies, withoutRules)),
    ...lintShadows(withoutTiers(policies)),
    ...lintTiers(policies),
  ].sort(compareFindings)
}

function readAs({ position, message }: Fault): Finding {
  const remedy = 'write what is meant; Cilium reads the text in the same way'
  return { position, code: 'read-as', message, remedy }
}
