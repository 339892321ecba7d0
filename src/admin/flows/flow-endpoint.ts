// Finds the endpoint of a flow, also when the endpoint is gone.

import { endpointId } from '../../core/ids.ts'
import type { FormerEndpoint } from '../../flows/record/former-endpoints.ts'
import type { AdminState } from '../state.ts'

export type FlowParts = Pick<AdminState, 'flows' | 'endpoints'>

/** Returns the endpoint with the number `id` of a flow in the ring. Undefined if the flow has no endpoint. */
export function endpointOfFlow(
  { flows, endpoints }: FlowParts,
  id: number,
): FormerEndpoint | undefined {
  return endpoints.registry.get(endpointId(id)) ?? flows.former.get(id)
}
