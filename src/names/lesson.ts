// One address of an answer on its way into the name cache, which `learn` and `renew` take. The caller keeps one lesson and
// fills it again for each address, so that nothing is allocated on the packet path.

import { endpointId, type EndpointId } from '../core/ids.ts'
import type { Family } from '../core/ip.ts'
import { NameKey } from './tables/name-table.ts'

/** Leaves an entry the grace that it has. A new entry gets the cache's `graceSeconds`. */
export const GRACE_AS_IT_IS = -1
/** When an entry of an earlier process was learned. */
export const LEARNED_BEFORE = Number.NEGATIVE_INFINITY
/** The guard has not looked at the address yet. */
export const NOT_CHECKED = -1

export class Lesson {
  /** The endpoint that asked. */
  endpoint: EndpointId = endpointId(0)
  name = new NameKey()
  /** The address: 4 or 16 octets at `offset`. */
  family: Family = 4
  octets: Uint8Array = new Uint8Array(16)
  offset = 0
  /** The second at which the TTL ends, as `NameCache.tick` counts. */
  liveUntil = 0
  /** The present second. */
  now = 0
  /** Seconds from the end of the TTL to the end of the entry. */
  grace = GRACE_AS_IT_IS
  /** `Clock.now()` of the answer. Undefined: now. */
  learnedAt: number | undefined
  /** How far the address is guarded (guard.ts), or NOT_CHECKED. */
  guarded = NOT_CHECKED
}
