// `evaluate` says what the rules of all tiers that cover one port of one destination decide together (docs/spec/semantics 2 "Tiers"):
//   1. Admin: of the rules that match, those of the policies with the lowest priority decide. Of one policy, the first rule decides. If
//      several policies with that priority match, deny wins over pass, and pass over allow. Pass means: go on.
//   2. All other policies, in any order: deny, audit-deny, allow.
//   3. Baseline, like Admin. compile.ts leaves out Baseline for endpoints that a policy of step 2 puts into default deny.
//   4. The endpoint's default.
//
// A datapath combines three answers: of the identity, of its class, and of any identity. It knows no order between them. An answer of the
// class or of any identity can contradict the answer of an identity in two ways only:
//   - It denies (or would, if a policy were not audited) what an Admin rule allows to the identity.
//   - It allows, in step 2, what a Baseline rule denies to the identity.
// Rules of tiers select identities, never classes, so no other order of steps puts an identity's answer against that of its class. With a
// Pass rule, the answer of an identity can also be that no rule about it decides, which no entry inside of a wider entry can say.
// If none of this can happen (`mayContradict`), every key has the answer of its own rules. Else the rules are `complete`: the entries of an
// identity have the answers of the rules about its class and about any identity too, and the entries of a class give way (`yieldTo`).

import type { PortRange } from '../../core/protocol.ts'
import type { Policy, Rule } from '../rule.ts'
import { strongest, type Coverage, type FlatEntry, type Turn, type Verdict } from './flatten.ts'

/** The turn of the endpoint's default. */
export const DEFAULT_TURN: Turn = { tier: 'default', priority: 0, policy: 0, rule: 0 }

/** Returns the turn of a rule; undefined for a rule of step 2. `policy`: the number of the policy. */
export function turnOf({ tier, rules }: Policy, rule: Rule, policy: number): Turn | undefined {
  if (tier === undefined) return undefined
  return { tier: tier.name, priority: tier.priority, policy, rule: rules.indexOf(rule) }
}

/** Decides over coverages that all cover one port. Returns undefined if none decides. Without turns it is `strongest`. */
export function evaluate(coverages: readonly Coverage[]): Verdict | undefined {
  if (coverages.every(({ turn }) => turn === undefined)) return strongest(coverages)
  const admin = firstOf(coverages, 'Admin')
  if (admin !== undefined) return admin
  const found = strongest(coverages.filter(({ turn }) => turn === undefined))
  if (found !== undefined && found.action !== 'audit-deny') return found
  const rest =
    firstOf(coverages, 'Baseline') ??
    strongest(coverages.filter(({ turn }) => turn?.tier === 'default'))
  if (found === undefined || rest?.action === 'deny') return rest
  return rest === undefined ? found : { action: 'audit-pass', origins: found.origins }
}

/** Returns what a tier decides. Undefined: no rule of the tier matches, or the tier passes. */
function firstOf(coverages: readonly Coverage[], tier: Turn['tier']): Verdict | undefined {
  const ofTier = coverages.filter(({ turn }) => turn?.tier === tier)
  const priority = Math.min(...ofTier.map(({ turn }) => turn?.priority ?? 0))
  const equal = ofTier.filter(({ turn }) => turn?.priority === priority)
  const firstRules = new Map<number, number>()
  for (const { turn } of equal) {
    if (turn === undefined) continue
    firstRules.set(turn.policy, Math.min(turn.rule, firstRules.get(turn.policy) ?? turn.rule))
  }
  const first = equal.filter(({ turn }) => turn && firstRules.get(turn.policy) === turn.rule)
  const deny = strongest(first.filter(({ action }) => action === 'deny'))
  if (deny !== undefined) return deny
  return first.some(({ action }) => action === 'pass') ? undefined : strongest(first)
}

/** True if entries must be `complete`. `levels`: the rules about classes and any identity. `selected`: the rules about identities. */
export function mayContradict(levels: readonly Coverage[], selected: readonly Coverage[]): boolean {
  const allowing = selected.filter(
    ({ turn, action }) => turn?.tier === 'Admin' && action === 'allow',
  )
  if (selected.some(({ action }) => action === 'pass')) return true
  const denying = selected.filter(
    ({ turn, action }) => turn?.tier === 'Baseline' && action === 'deny',
  )
  return levels.some((level) => {
    const isDeny = level.action === 'deny' || level.action === 'audit-deny'
    if (isDeny) return allowing.some((each) => overlap(each.range, level.range))
    return level.turn === undefined && denying.some((each) => overlap(each.range, level.range))
  })
}

function overlap(a: PortRange, b: PortRange): boolean {
  const isOneProtocol = a.protocol === b.protocol || a.protocol === 0 || b.protocol === 0
  return isOneProtocol && a.low <= b.high && b.low <= a.high
}

/**
 * Returns the entry of a class in a form that gives way to the entries of identities, which are complete: a deny holds only for identities
 * without an entry that lets the packet pass, and audit reports only packets that no identity's rule allows. For an identity without
 * entries the verdict stays the same.
 */
export function yieldTo(entry: FlatEntry): FlatEntry {
  switch (entry.action) {
    case 'deny':
      return { ...entry, action: 'weak-deny' }
    case 'audit-deny':
      // Nothing lets the packet pass, so the default denies it.
      return { ...entry, action: 'weak-deny', origins: [] }
    case 'audit-pass':
      return { ...entry, action: 'audit' }
    case 'allow':
    case 'audit':
    case 'weak-deny':
      return entry
  }
}
