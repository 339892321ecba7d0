// Flows that were open before an endpoint was first enforced pass for a while, so that switching enforcement on cuts no running flow. The
// daemon adopts once, for an endpoint that is there when the daemon starts and that no pinned state knows; never for a later endpoint or
// generation.
//
//  - Listed flows (from conntrack) pass until `passMs` is over, also against a deny: they are proven to be older than the policy. They end
//    when `adopt-existing` ends, at a time that is known.
//  - For `learnMs`, TCP segments without SYN count as part of such a flow and are adopted as well, because conntrack may be absent or may not
//    know the flow. An endpoint can forge those segments, so such flows never pass against a deny. A flow whose beginning was seen is not
//    adopted: a policy that revokes it is younger than enforcement.
//  - A SYN of either kind never passes by adoption: a flow that begins now is judged.

import type { EndpointId, Generation } from '../core/ids.ts'
import type { Family } from '../core/ip.ts'

/** A flow as the endpoint sees it; of ICMP echo both ports are the identifier. */
export interface FlowTuple {
  readonly family: Family
  readonly protocol: number
  /** 16 octets, IPv4 in the first 4; so is `peer`. */
  readonly local: Uint8Array
  readonly localPort: number
  readonly peer: Uint8Array
  readonly peerPort: number
}

/** May be asked for before the endpoint is upserted, so that no packet is lost when its hook is attached. */
export interface Adoption {
  readonly endpoint: EndpointId
  /** Flows of another generation are never spared. */
  readonly generation: Generation
  /** How long adopted flows pass. */
  readonly passMs: number
  /** How long TCP segments without SYN are adopted; 0: only what is listed. */
  readonly learnMs: number
  readonly flows: readonly FlowTuple[]
}

export interface AdoptedFlow extends FlowTuple {
  readonly endpoint: EndpointId
  /** How long it still passes, in milliseconds; more than 0. */
  readonly leftMs: number
}
