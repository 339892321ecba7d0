// What a change of configuration takes from endpoints: one that had policies and has none afterwards is open by its
// default, which is told as a flow and in the log.

import type { Clock } from '../core/clock.ts'
import type { EndpointControl } from '../enforcement/endpoint-control.ts'
import type { FlowRing } from '../flows/record/flow-ring.ts'
import type { PolicyControl } from '../enforcement/policy-control.ts'
import { qualifiedName } from '../enforcement/rule-origins.ts'
import type { Policy } from '../policy/rule.ts'
import type { Log } from '../telemetry/log.ts'

export interface LostPoliciesOptions {
  readonly clock: Clock
  readonly log: Log
  readonly policies: PolicyControl
  readonly endpoints: EndpointControl
  readonly flows: FlowRing
}

/** Makes the change and tells of endpoints that lost their last policy by it; returns what `change` does. */
export function tellLostPolicies(to: LostPoliciesOptions, change: () => boolean): boolean {
  const before = selected(to)
  const changed = change()
  const after = changed ? selected(to) : before
  for (const [id, policies] of before) {
    const endpoint = to.endpoints.registry.byNumber(id)
    if (after.has(id) || endpoint === undefined) continue
    const names = policies.map(qualifiedName).join(', ')
    to.flows.addPolicyLost(to.clock.wall(), id, names)
    to.log.warn({ endpoint: endpoint.name, policies: names }, 'endpoint lost its last policy')
  }
  return changed
}

/** Endpoints that policies select, with those policies. */
function selected({
  endpoints,
  policies,
}: LostPoliciesOptions): ReadonlyMap<number, readonly Policy[]> {
  const all = new Map<number, readonly Policy[]>()
  for (const { id } of endpoints.registry) {
    const selecting = policies.policiesOf(id)
    if (selecting.length > 0) all.set(id, selecting)
  }
  return all
}
