// HugePages moves the tables of a busy daemon into huge pages of 2 MiB. A new name touches about 30 places in tables that together have
// hundreds of megabytes. With pages of 4 KiB, most of these accesses also miss the processor's cache of page addresses. An area moves when
// half of it was touched, so a table needs at most twice its memory (docs/decisions/0061-huge-pages-for-busy-daemons.md).

import type { Clock, Timer } from '../core/clock.ts'
import type { Posix } from '../native/native.ts'

/** Errors after which another try has no use: EPERM (a filter of system calls) and EINVAL (an older kernel). */
const LASTING: readonly number[] = [-1, -22]
/** The number of entries from which on a daemon is busy. */
const BUSY_ENTRIES = 16_384
const LOOK_MS = 1000
const STEP_MS = 50
/** Areas per step. A look at an area takes about 10 us. */
const AREAS_PER_STEP = 8

export interface HugePagesOptions {
  readonly clock: Clock
  readonly posix: Pick<Posix, 'hugeAreas' | 'makeHuge'>
  /** Returns how many entries the tables have. */
  readonly entries: () => number
  /** Returns the memory of the tables. */
  readonly columns: () => readonly Uint8Array[]
}

export class HugePages {
  readonly #options: HugePagesOptions
  /** The areas that have small pages. */
  #areas: number[] = []
  #next = 0
  #timer: Timer | undefined

  constructor(options: HugePagesOptions) {
    this.#options = options
  }

  start(): void {
    const { clock, posix, entries, columns } = this.#options
    this.#timer = clock.every(LOOK_MS, () => {
      if (entries() < BUSY_ENTRIES) return
      this.stop()
      this.#areas = [...posix.hugeAreas(columns())]
      this.#timer = clock.every(STEP_MS, () => this.#step())
    })
  }

  stop(): void {
    this.#timer?.cancel()
  }

  /** Moves those of the next areas that are half full. Ends if all areas have moved, or if the kernel has no huge pages. */
  #step(): void {
    const areas = this.#areas
    for (let i = 0; i < AREAS_PER_STEP && areas.length > 0; i++) {
      this.#next = (this.#next + 1) % areas.length
      const result = this.#options.posix.makeHuge(areas[this.#next]!)
      if (LASTING.includes(result)) areas.length = 0
      if (result === 1) areas.splice(this.#next, 1)
    }
    if (areas.length === 0) this.stop()
  }
}
