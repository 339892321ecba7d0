// This file declares adoption. Adoption lets connections continue for a while that were open before an endpoint was first enforced, so that
// switching enforcement on cuts no running connection. The daemon adopts once, for an endpoint that exists when the daemon starts and that
// no pinned state knows. It never adopts for a later endpoint or generation.
//
//  - Listed connections (from conntrack) continue for `passMs`, even if a rule denies them, because they are proven to be older than the
//    policy. They end when `adopt-existing` ends, so the time of their end is known.
//  - For `learnMs`, the datapath takes a TCP segment without SYN as part of an older connection, and adopts this connection too. The reason
//    is that conntrack can be absent or can have lost the connection. An endpoint can forge such segments, so these connections never
//    continue against a deny rule. If the datapath saw the beginning of a connection, it does not adopt the connection, because a policy
//    that revokes it is younger than enforcement.
//  - A segment with SYN never passes by adoption, because policy judges a connection that begins now.

import type { EndpointId, Generation } from '../core/ids.ts'
import type { Family } from '../core/ip.ts'

/** A connection as the endpoint sees it. For ICMP echo both ports are the identifier. */
export interface FlowTuple {
  readonly family: Family
  readonly protocol: number
  /** 16 octets, IPv4 in the first 4. */
  readonly local: Uint8Array
  readonly localPort: number
  /** 16 octets, IPv4 in the first 4. */
  readonly peer: Uint8Array
  readonly peerPort: number
}

/** An order to adopt connections of an endpoint. Give it before the endpoint is upserted, so that no packet is lost at its new hook. */
export interface Adoption {
  readonly endpoint: EndpointId
  /** Connections of another generation are never adopted. */
  readonly generation: Generation
  /** How long adopted connections continue, in milliseconds. */
  readonly passMs: number
  /** How long TCP segments without SYN are adopted, in milliseconds. 0: only the listed connections are adopted. */
  readonly learnMs: number
  readonly flows: readonly FlowTuple[]
}

/** A connection that was adopted and still continues. */
export interface AdoptedFlow extends FlowTuple {
  readonly endpoint: EndpointId
  /** How long the connection still continues, in milliseconds; more than 0. */
  readonly leftMs: number
}
