// StartLimit says how long the running daemon waits for a successor to become ready. A successor that uses the processor makes progress,
// so it has more time on a busy machine. A successor that hangs has less.

import { readFileSync } from 'node:fs'
import type { Clock } from '../core/clock.ts'

/** The longest time without progress. */
const IDLE_MAX_MS = 5000
/** The longest time in all. */
const START_MAX_MS = 15_000
/** A process that only waits uses less than this in IDLE_MAX_MS. */
const PROGRESS_MS = 100
const LOOK_MS = 250
/** The kernel counts processor time in this unit for user space (USER_HZ is 100). */
const TICK_MS = 10
/** Positions in /proc/PID/stat after the process name, counted from 0. */
const [UTIME, STIME] = [11, 12]

export class StartLimit {
  readonly #clock: Clock
  readonly #used: () => number
  readonly #began: number
  #looked: number
  /** When the successor last made progress, and the processor time that it had used by then. */
  #progress: { readonly at: number; readonly used: number }

  /** `used` returns the processor time of the successor in milliseconds. */
  constructor(clock: Clock, used: () => number) {
    this.#clock = clock
    this.#used = used
    this.#began = this.#looked = clock.now()
    this.#progress = { at: this.#began, used: used() }
  }

  get isOver(): boolean {
    const now = this.#clock.now()
    if (now - this.#looked >= LOOK_MS) this.#look(now)
    return now - this.#progress.at >= IDLE_MAX_MS || now - this.#began >= START_MAX_MS
  }

  #look(now: number): void {
    this.#looked = now
    const used = this.#used()
    if (used - this.#progress.used >= PROGRESS_MS) this.#progress = { at: now, used }
  }
}

/** Returns the processor time of all threads of a process in milliseconds; 0 if there is no such process. */
export function processorTimeOf(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return (Number(fields[UTIME]) + Number(fields[STIME])) * TICK_MS
  } catch {
    return 0
  }
}
