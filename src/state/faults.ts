// This file counts the writes that the disk refused or lost, by cause, and says when to try again. Each cause is reported once, so that a
// full disk does not also fill the log. After a finished image each cause can be reported again.

import type { Clock, Timer } from '../core/clock.ts'
import { messageOf, systemCodeOf } from '../core/errors.ts'

export const FAULT_CAUSES = [
  /** ENOSPC, EDQUOT, EFBIG */
  'no-space',
  /** EROFS, EACCES, EPERM */
  'read-only',
  /** EIO */
  'io-error',
  /** Fewer octets were written than given, without an error. */
  'short-write',
  /** More records wait for the disk than the buffer holds, or a file grew past its bound. */
  'overflow',
  /** A record is larger than the largest frame. */
  'too-large',
  /** A file that was written is gone or replaced. */
  'lost',
  'other',
] as const

export type FaultCause = (typeof FAULT_CAUSES)[number]

export interface StateFault {
  readonly cause: FaultCause
  readonly message: string
}

const CAUSE_OF: ReadonlyMap<string, FaultCause> = new Map([
  ['ENOSPC', 'no-space'],
  ['EDQUOT', 'no-space'],
  ['EFBIG', 'no-space'],
  ['EROFS', 'read-only'],
  ['EACCES', 'read-only'],
  ['EPERM', 'read-only'],
  ['EIO', 'io-error'],
])

/** Returns true if the error comes from a full, read-only or broken disk. */
export function isRefusal(error: unknown): boolean {
  return CAUSE_OF.has(systemCodeOf(error) ?? '')
}

export class StateFaults {
  readonly counts: Record<FaultCause, number> = {
    'no-space': 0,
    'read-only': 0,
    'io-error': 0,
    'short-write': 0,
    overflow: 0,
    'too-large': 0,
    lost: 0,
    other: 0,
  }
  readonly #report: (fault: StateFault) => void
  readonly #reported = new Set<FaultCause>()

  constructor(report: (fault: StateFault) => void) {
    this.#report = report
  }

  add(cause: FaultCause, message: string): void {
    this.counts[cause]++
    if (this.#reported.has(cause)) return
    this.#reported.add(cause)
    this.#report({ cause, message })
  }

  addError(error: unknown): void {
    const code = systemCodeOf(error) ?? ''
    this.add(CAUSE_OF.get(code) ?? 'other', messageOf(error))
  }

  /** Call after a finished image. Each cause is then reported anew. */
  healed(): void {
    this.#reported.clear()
  }
}

const FIRST_MS = 1000
const LONGEST_MS = 60_000

/** Measures the pause after a refusal of the disk. It is one second at first, then twice as long each time, at most one minute. */
export class RetryPause {
  readonly #clock: Clock
  #next = FIRST_MS
  #until = -Infinity

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get isOver(): boolean {
    return this.#clock.now() >= this.#until
  }

  /** Begins a pause if none is in progress. */
  failed(): void {
    if (!this.isOver) return
    this.#until = this.#clock.now() + this.#next
    this.#next = Math.min(LONGEST_MS, 2 * this.#next)
  }

  succeeded(): void {
    this.#until = -Infinity
    this.#next = FIRST_MS
  }
}

const AGAIN_MS = 5000

/** Repeats refused writes every five seconds. At most one timer runs, however many writes were refused. */
export class RetryTimer {
  readonly #clock: Clock
  readonly #write: () => void
  #timer: Timer | undefined

  /** `write` must call `later` if the disk refuses the write again. */
  constructor(clock: Clock, write: () => void) {
    this.#clock = clock
    this.#write = write
  }

  later(): void {
    this.#timer ??= this.#clock.after(AGAIN_MS, () => {
      this.#timer = undefined
      this.#write()
    })
  }

  cancel(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }
}
