// Backoff gives the wait before a repeated request: exponential with full jitter, so that many nodes that lose the server at one moment
// do not come back at one moment. A server's Retry-After is the least wait, and the jitter comes on top of it.

import type { RandomPool } from '../../core/random.ts'

/** The longest random part of the first wait. It doubles with each failure up to WAIT_MAX_MS. */
export const WAIT_MS = 1_000
export const WAIT_MAX_MS = 30_000
/** The least wait, so that a fast refusal makes no busy loop. */
export const WAIT_MIN_MS = 50
/** A larger Retry-After is shortened, so that a fault in the server does not stop the requests for long. */
export const RETRY_AFTER_MAX_MS = 300_000

/** How long a missing kind or right is left alone in the end; half of it at least. */
export const SLOW_MS = 60_000

const DRAWS = 65_536

export class Backoff {
  readonly #random: RandomPool
  #bound = WAIT_MS

  constructor(random: RandomPool) {
    this.#random = random
  }

  /** Returns the next wait in milliseconds, after a failure. */
  next(retryAfterMs = 0): number {
    const least = Math.max(WAIT_MIN_MS, Math.min(retryAfterMs, RETRY_AFTER_MAX_MS))
    const wait = least + randomPart(this.#random, this.#bound)
    this.#bound = Math.min(this.#bound * 2, WAIT_MAX_MS)
    return wait
  }

  /** Begins with short waits again, after a success. */
  reset(): void {
    this.#bound = WAIT_MS
  }
}

/**
 * SlowLooks gives the wait before a look for a missing kind or right. It grows from one second to a minute.
 */
export class SlowLooks {
  #bound = WAIT_MS

  next(random: RandomPool): number {
    const wait = halfToWhole(random, this.#bound)
    this.#bound = Math.min(this.#bound * 2, SLOW_MS)
    return wait
  }

  /** Begins with short waits again: the kind and the right were there. */
  reset(): void {
    this.#bound = WAIT_MS
  }
}

/** Returns a uniform random time in milliseconds, less than `ms`. */
export function randomPart(random: RandomPool, ms: number): number {
  return Math.floor((random.below(DRAWS) / DRAWS) * ms)
}

/** Returns a uniform random time in milliseconds, from half of `ms` to `ms`. */
export function halfToWhole(random: RandomPool, ms: number): number {
  return ms / 2 + randomPart(random, ms / 2)
}
