// Finds the policies that select pods which this node does not know. Their rules do not hold for these pods: what a rule allows stays
// closed, and what a rule denies stays open if another rule allows it.

import { qualifiedName } from '../../enforcement/rule-origins.ts'
import { isNamespaceKey } from '../../policy/load/selector.ts'
import { splitKey } from '../../policy/match/labels.ts'
import type { LabelSelector, PeerSelector, Policy, Rule, RuleAction } from '../../policy/rule.ts'
import type { AdminState } from '../state.ts'
import { someOf } from './rows.ts'

/** A policy that selects unknown pods. */
export interface PolicyOfUnknownPods {
  readonly policy: string
  /** True if a rule allows such pods. */
  readonly allows: boolean
  /** True if a rule denies such pods, or passes them to the next tier. */
  readonly denies: boolean
}

/** Returns the policies whose rules do not hold for pods of other nodes. Empty if this node knows these pods. */
export function policiesOfUnknownPods({
  cluster,
  policies,
}: Pick<AdminState, 'cluster' | 'policies'>): readonly PolicyOfUnknownPods[] {
  if (cluster === undefined || cluster.unknownPods.reason === '') return []
  const { except } = cluster.unknownPods
  return policies.policies.flatMap((policy) => {
    const actions = actionsOnPods(policy, except)
    if (actions.size === 0) return []
    const denies = actions.has('deny') || actions.has('pass')
    return [{ policy: qualifiedName(policy), allows: actions.has('allow'), denies }]
  })
}

/** Returns one sentence about the rules that deny unknown pods, and one about the rules that allow them. */
export function unknownPodWarnings(
  state: Pick<AdminState, 'cluster' | 'policies'>,
): readonly string[] {
  const found = policiesOfUnknownPods(state)
  const why = state.cluster?.unknownPods.reason ?? ''
  const sentence = (does: 'denies' | 'allows', action: 'deny' | 'allow'): readonly string[] => {
    const names = found.filter((each) => each[does]).map(({ policy }) => policy)
    if (names.length === 0) return []
    return [`${why}: ${action} rules of ${someOf(names)} do not ${action} them`]
  }
  return [...sentence('denies', 'deny'), ...sentence('allows', 'allow')]
}

function actionsOnPods({ rules }: Policy, except: readonly string[]): ReadonlySet<RuleAction> {
  const selecting = rules.filter(
    (rule) =>
      rule.peers.kind === 'selectors' &&
      !opensNothing(rule) &&
      rule.peers.selectors.some((peer) => canSelectPods(peer, except)),
  )
  return new Set(selecting.map(({ action }) => action))
}

/** True for a rule that only says which names can be asked. Pods ask the address of the DNS service, which is no pod. */
function opensNothing({ action, toPorts }: Rule): boolean {
  return action === 'allow' && toPorts?.every(({ dns }) => dns !== undefined) === true
}

/** True if a peer can select pods, except those of these namespaces only. */
export function canSelectPods(peer: PeerSelector, except: readonly string[]): boolean {
  if (peer.kind === 'entity') return peer.entity === 'cluster'
  return peer.kind === 'endpoints' && fitsPods(peer.selector) && !isWithin(peer.selector, except)
}

/** True if the selector selects pods of these namespaces only. */
function isWithin(
  { matchLabels, matchExpressions = [] }: LabelSelector,
  namespaces: readonly string[],
) {
  const named = [...matchLabels].some(
    ([key, value]) => isNamespaceKey(key) && namespaces.includes(value),
  )
  return (
    named ||
    matchExpressions.some(
      ({ key, operator, values }) =>
        operator === 'In' &&
        isNamespaceKey(key) &&
        values.every((each) => namespaces.includes(each)),
    )
  )
}

/** False for a selector that needs a label of another source than Kubernetes, which no pod has. */
function fitsPods({ matchLabels, matchExpressions = [] }: LabelSelector): boolean {
  const needed = matchExpressions.filter(
    ({ operator }) => operator === 'In' || operator === 'Exists',
  )
  return [...matchLabels.keys(), ...needed.map(({ key }) => key)].every((key) =>
    ['any', 'k8s'].includes(splitKey(key, 'any').source),
  )
}
