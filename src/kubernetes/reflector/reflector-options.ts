// What a reflector needs, and how long it waits.

import type { Clock } from '../../core/clock.ts'
import type { RandomPool } from '../../core/random.ts'
import type { ApiPort } from '../connection/api-port.ts'
import type { CollectionEvents } from './collection-events.ts'
import type { Target } from './collections.ts'
import type { RelistGate } from './relist-gate.ts'
import { WATCH_MS } from './requests.ts'

export interface ReflectorOptions {
  readonly target: Target
  readonly api: ApiPort
  readonly clock: Clock
  readonly random: RandomPool
  /** Shared by the reflectors of a node. */
  readonly gate: RelistGate
  /** A list that becomes due while watching begins within this time, at random, in milliseconds. */
  readonly spreadMs: number
  readonly events: CollectionEvents
}

/** The time limit of a watch without any event. The server ends each watch before. */
export const SILENT_MS = 2 * WATCH_MS + 30_000
/** The time limit of a page. The server itself gives up after 60 s. */
export const PAGE_MS = 90_000
