// A lesson is the argument of `NameCache.learn` and `renew`: one address of an answer, its name, and the endpoint that asked. The
// caller keeps one lesson and fills it again for each address, so that the packet path allocates nothing.

import { endpointId, type EndpointId } from '../core/ids.ts'
import type { Family } from '../core/ip.ts'
import { NameKey } from './tables/name-table.ts'

/** Value of `Lesson.grace`: a known entry keeps its grace, and a new entry gets the cache's `graceSeconds`. */
export const GRACE_AS_IT_IS = -1
/** Value of `learnedAt` for an entry that an earlier process learned. */
export const LEARNED_BEFORE = Number.NEGATIVE_INFINITY
/** Value of `Lesson.guarded`: the guard has not checked the address yet. */
export const NOT_CHECKED = -1

export class Lesson {
  /** The endpoint that asked. */
  endpoint: EndpointId = endpointId(0)
  name = new NameKey()
  /** The address: 4 or 16 octets at `offset`. */
  family: Family = 4
  octets: Uint8Array = new Uint8Array(16)
  offset = 0
  /** The last second of the TTL, in the seconds of `NameCache.tick`. */
  liveUntil = 0
  /** The present time, in the seconds of `NameCache.tick`. */
  now = 0
  /** Seconds from the end of the TTL to the end of the entry, or GRACE_AS_IT_IS. */
  grace = GRACE_AS_IT_IS
  /** `Clock.now()` when the answer arrived. Undefined: the cache takes the present time. */
  learnedAt: number | undefined
  /** The guard's level of the address (guard.ts), or NOT_CHECKED. */
  guarded = NOT_CHECKED
}
