// Defines the Clock that all code takes to wait or to read the time. Tests have a fake Clock in test/support. No other file of src calls
// the runtime's clocks and timers.

/** A timer that can be cancelled. */
export interface Timer {
  cancel(): void
}

export interface Clock {
  /** Monotonic milliseconds since an arbitrary start. Jumps of the wall clock do not change this time. */
  now(): number
  /** Wall-clock milliseconds since the epoch. Used only for people, logs and times that outlive a boot. */
  wall(): number
  /** Calls `run` once after `ms` milliseconds. A pending timer does not keep the process alive. */
  after(ms: number, run: () => void): Timer
  /** Calls `run` every `ms` milliseconds until cancelled. */
  every(ms: number, run: () => void): Timer
  /** Calls `run` in the next turn, after I/O that is pending now. */
  soon(run: () => void): void
}

/** The kernel's clock since boot. No process can set this clock, and every process reads the same time. */
export interface BootClock {
  /** Seconds, exact to a millisecond. */
  seconds(): number
}

export const systemBootClock: BootClock = {
  seconds: () => Number(process.hrtime.bigint() / 1_000_000n) / 1000,
}

/** How many milliseconds `systemClock.now()` is behind CLOCK_MONOTONIC. The quickest of five measurements is the most exact. */
const BEHIND = Array.from({ length: 5 }, () => {
  const before = performance.now()
  const [seconds, nanoseconds] = process.hrtime()
  const took = performance.now() - before
  return { took, by: seconds * 1000 + nanoseconds / 1e6 - before - took / 2 }
}).reduce((least, each) => (each.took < least.took ? each : least)).by

/** Converts a time of CLOCK_MONOTONIC in milliseconds to a time of `systemClock.now()`. It can lie before the start of the process. */
export function atMonotonic(milliseconds: number): number {
  return milliseconds - BEHIND
}

/** Keeps the process alive until the returned timer is cancelled. Most timers and sockets do not keep the process alive. */
export function stayAlive(): Timer {
  const handle = setInterval(() => undefined, 2 ** 30)
  return { cancel: () => clearInterval(handle) }
}

export const systemClock: Clock = {
  now: () => performance.now(),
  wall: () => Date.now(),
  after(ms, run) {
    const handle = setTimeout(run, ms)
    handle.unref()
    return { cancel: () => clearTimeout(handle) }
  },
  every(ms, run) {
    const handle = setInterval(run, ms)
    handle.unref()
    return { cancel: () => clearInterval(handle) }
  },
  soon(run) {
    setImmediate(run)
  },
}

/**
 * The clock of the packet path. While sockets handle the messages of a turn, the time stands still, so that a query does not read the
 * system's clock. The time stands still for one or two milliseconds at most, and the packet path needs no more exact time.
 */
export class TurnClock implements Clock {
  readonly #clock: Clock
  #isHeld = false
  #now = 0
  #wall = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Reads the time once. The time stands still at this value until the next `hold` or `release`. */
  hold(): void {
    this.#now = this.#clock.now()
    this.#wall = this.#clock.wall()
    this.#isHeld = true
  }

  release(): void {
    this.#isHeld = false
  }

  now(): number {
    return this.#isHeld ? this.#now : this.#clock.now()
  }

  wall(): number {
    return this.#isHeld ? this.#wall : this.#clock.wall()
  }

  after(ms: number, run: () => void): Timer {
    return this.#clock.after(ms, run)
  }

  every(ms: number, run: () => void): Timer {
    return this.#clock.every(ms, run)
  }

  soon(run: () => void): void {
    this.#clock.soon(run)
  }
}
