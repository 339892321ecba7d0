// Makes the flow of a packet that was dropped, or would have been dropped without audit. The flow names the policies that denied
// the packet. These are the policies of the entry in the datapath that decided. If no entry decided, they are the policies that
// turned default deny on. The flow also has the names by which the peer was known when the packet's connection began. A name that
// was resolved later cannot be the reason for the connection. Without such a name, the flow has the name that expired last, if
// the peer had one. Each event costs one look at the peer's names, at most a thousand times a second.

import { endpointId } from '../../core/ids.ts'
import { widthOf } from '../../core/ip.ts'
import type { DatapathEvent } from '../../datapath/entries.ts'
import type { CoreState } from '../../enforcement/core-state.ts'
import { namesOf } from '../../explain/known-addresses.ts'
import type { PacketFlow } from './flow-kinds.ts'
import type { PolicyControl } from '../../enforcement/policy-control.ts'

/** How many names of a peer are recorded: names that the endpoint itself asked, or, if it asked none, names that other endpoints asked. */
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
  const { core, flowBegins } = parts
  const names = isWhole
    ? namesOf(core, address, NAMES_MAX, event.endpoint, flowBegins.of(event))
    : []
  const isNameless = isWhole && names.length === 0
  return {
    ...event,
    kind: verdict === 'audit' ? 'audit' : 'drop',
    rule: event.rule === 0 && byPolicy ? defaultDeny(parts, event.endpoint) : event.rule,
    names,
    expiredName: isNameless ? core.expiry.expired.find(event.endpoint, family, peer) : undefined,
  }
}

/** Number of the set of policies that turned default deny on for the endpoint; 0 when no policy did. */
function defaultDeny({ core, policies }: PacketFlowParts, endpoint: number): number {
  const denying = policies.inForceOf(endpointId(endpoint))?.compiled.denying ?? []
  return core.origins.setOf(denying)
}

/** Bound of remembered connections. At the bound, the connection that began first is forgotten. */
const FLOWS_MAX = 8192
/** A connection without a packet for this time is over, and another connection can use its ports. */
const IDLE_MS = 180_000

interface Flow {
  readonly began: number
  seen: number
}

/**
 * Remembers when the connections of reported packets began; a series of UDP packets between the same ports is one connection. If the first
 * packet was not reported, the connection begins with the first reported packet. Costs 1 MiB when full.
 */
export class FlowBegins {
  readonly #flows = new Map<string, Flow>()

  /** Returns when the connection of a reported packet began, as far as is known, in milliseconds of `Clock.now()`. */
  of(event: DatapathEvent): number {
    const { seen } = event
    if (event.localPort === 0) return seen
    const key = keyOf(event)
    const known = this.#flows.get(key)
    if (known !== undefined && !event.opening && seen - known.seen < IDLE_MS) {
      known.seen = Math.max(known.seen, seen)
      return Math.min(known.began, seen)
    }
    this.#flows.delete(key)
    if (this.#flows.size >= FLOWS_MAX) {
      for (const first of this.#flows.keys()) {
        this.#flows.delete(first)
        break
      }
    }
    this.#flows.set(key, { began: seen, seen })
    return seen
  }
}

function keyOf({ endpoint, protocol, localPort, port, peer }: DatapathEvent): string {
  return `${endpoint} ${protocol} ${localPort} ${port} ${peer.join('.')}`
}
