// Records a packet that was dropped or would have been, with the names of its peer when its flow began and the policies that denied
// it. An event of the datapath names the rules of the entry that decided; where no entry did, the policies that turned default
// deny on for the endpoint are named. Costs one look at the peer's names, at most a thousand times a second.

import { endpointId } from '../../core/ids.ts'
import { widthOf } from '../../core/ip.ts'
import type { DatapathEvent } from '../../datapath/entries.ts'
import type { CoreState } from '../../enforcement/core-state.ts'
import { namesOf } from '../../explain/known-addresses.ts'
import type { FlowBegins } from './flow-begins.ts'
import type { PacketFlow } from './flow-kinds.ts'
import type { PolicyControl } from '../../enforcement/policy-control.ts'

/** Names of a peer that are recorded: what the endpoint itself asked, or where it asked none of them, what others did. */
const NAMES_MAX = 4

export interface PacketFlowParts {
  readonly core: CoreState
  readonly policies: Pick<PolicyControl, 'inForceOf'>
  readonly flowBegins: FlowBegins
}

export function packetFlowOf(parts: PacketFlowParts, event: DatapathEvent): PacketFlow {
  const { family, peer, reason, verdict } = event
  const address = { family, octets: peer, length: widthOf(family) }
  const byPolicy = reason === 'policy' || reason === 'fragment'
  const isWhole = reason !== 'malformed'
  return {
    ...event,
    kind: verdict === 'audit' ? 'audit' : 'drop',
    rule: event.rule === 0 && byPolicy ? defaultDeny(parts, event.endpoint) : event.rule,
    names: isWhole
      ? namesOf(parts.core, address, NAMES_MAX, event.endpoint, parts.flowBegins.of(event))
      : [],
  }
}

/** The number of the policies that deny what no rule allows; 0 when none does. */
function defaultDeny({ core, policies }: PacketFlowParts, endpoint: number): number {
  const denying = policies.inForceOf(endpointId(endpoint))?.compiled.denying ?? []
  return core.origins.setOf(denying)
}
