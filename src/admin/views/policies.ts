// Lists policies with the state of their files. A file in which no policy could be read has a row of its own.

import { formatFault } from '../../core/errors.ts'
import { isObjectName } from '../../core/object-names.ts'
import { qualifiedName } from '../../enforcement/rule-origins.ts'
import type { Policy } from '../../policy/rule.ts'
import type { PolicyShape } from '../document/shapes.ts'
import type { AdminState } from '../state.ts'

export function* policyRows(state: AdminState): Iterable<PolicyShape> {
  const counts = endpointCounts(state)
  for (const file of state.policyFiles()) {
    const error = file.faults.length === 0 ? null : file.faults.map(formatFault).join('\n')
    for (const policy of file.policies) {
      yield {
        name: policy.name,
        namespace: policy.namespace ?? null,
        kind: policy.kind,
        file: file.path,
        endpoints: counts.get(policy) ?? 0,
        selectors: selectorTexts(state, policy),
        unseen: unseenTexts(state, policy),
        audited: policy.audited === true,
        state: file.state,
        error,
      }
    }
    if (file.policies.length > 0 || error === null) continue
    yield {
      name: '',
      namespace: null,
      kind: null,
      file: file.path,
      endpoints: 0,
      selectors: [],
      unseen: [],
      audited: false,
      state: file.state,
      error,
    }
  }
}

/** Policies that select no endpoint. This is usually a mistake. */
export function idlePolicies(state: AdminState): readonly string[] {
  const counts = endpointCounts(state)
  const idle = state.policies.policies.filter((policy) => !counts.has(policy))
  // A cluster has policies for the pods of all nodes.
  return idle.filter(({ position }) => !isObjectName(position.file)).map(qualifiedName)
}

/** How many endpoints each policy selects. A policy that selects none is not in the map. */
function endpointCounts(state: AdminState): ReadonlyMap<Policy, number> {
  const counts = new Map<Policy, number>()
  for (const { id } of state.endpoints.registry) {
    for (const policy of state.policies.policiesOf(id)) {
      counts.set(policy, (counts.get(policy) ?? 0) + 1)
    }
  }
  return counts
}

function selectorTexts(state: AdminState, policy: Policy): readonly string[] {
  const texts = new Set<string>()
  for (const { peers } of policy.rules) {
    if (peers.kind !== 'selectors') continue
    for (const peer of peers.selectors) {
      if (peer.kind === 'entity') texts.add(peer.entity)
      else texts.add(state.core.selectors.find(peer)?.text ?? '')
    }
  }
  texts.delete('')
  return [...texts].sort()
}

/** The name selectors that no answered name has matched. Such a selector is misspelt or not needed. */
function unseenTexts({ core }: AdminState, policy: Policy): readonly string[] {
  const texts = new Set<string>()
  for (const { peers } of policy.rules) {
    for (const peer of peers.kind === 'any' ? [] : peers.selectors) {
      if (peer.kind !== 'fqdn' || core.selectorLabels.hasSeen(peer.pattern)) continue
      texts.add(peer.pattern.text)
    }
  }
  return [...texts].sort()
}
