// Reports endpoints that lose their last policy by a change of the configuration. Such an endpoint then has its default, which can allow
// everything. Therefore a flow and a log line report the endpoint.

import type { Clock } from '../core/clock.ts'
import type { EndpointControl } from '../enforcement/endpoint-control.ts'
import type { FlowRing } from '../flows/record/flow-ring.ts'
import type { PolicyControl } from '../enforcement/policy-control.ts'
import { qualifiedName } from '../enforcement/rule-origins.ts'
import type { Policy } from '../policy/rule.ts'
import type { Log } from '../telemetry/log.ts'

export interface LostPoliciesParts {
  readonly clock: Clock
  readonly log: Log
  readonly policies: PolicyControl
  readonly endpoints: EndpointControl
  readonly flows: FlowRing
}

/** Makes the change, and reports the endpoints that lost their last policy by this change. Returns the result of `change`. */
export function reportLostPolicies(parts: LostPoliciesParts, change: () => boolean): boolean {
  const before = selected(parts)
  const changed = change()
  const after = changed ? selected(parts) : before
  for (const [id, policies] of before) {
    const endpoint = parts.endpoints.registry.byNumber(id)
    if (after.has(id) || endpoint === undefined) continue
    const names = policies.map(qualifiedName).join(', ')
    parts.flows.addPolicyLost(parts.clock.wall(), id, names)
    parts.log.warn({ endpoint: endpoint.name, policies: names }, 'endpoint lost its last policy')
  }
  return changed
}

/** The policies of each endpoint that at least one policy selects. */
function selected({
  endpoints,
  policies,
}: LostPoliciesParts): ReadonlyMap<number, readonly Policy[]> {
  const all = new Map<number, readonly Policy[]>()
  for (const { id } of endpoints.registry) {
    const selecting = policies.policiesOf(id)
    if (selecting.length > 0) all.set(id, selecting)
  }
  return all
}
