// Traffic of namegate itself where it shares a network namespace with the workload that it fences, as a sidecar does.

import type { Family } from '../core/ip.ts'

/** To one server, UDP and TCP: with this mark, from this user, or it is not ours. */
export interface OwnTraffic {
  readonly mark: number
  readonly uid: number
  readonly family: Family
  /** Of the server, 16 octets. */
  readonly octets: Uint8Array
  readonly port: number
}
