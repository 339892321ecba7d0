// Time as a port. Everything that waits or dates takes a Clock; the fake one is in test/support.
// This is the only file of src that may call the runtime's clocks and timers.

/** A cancellable timer. */
export interface Timer {
  cancel(): void
}

export interface Clock {
  /** Monotonic milliseconds since an arbitrary start; survives wall-clock jumps. */
  now(): number
  /** Wall-clock milliseconds since the epoch, for people and logs only. */
  wall(): number
  /** Calls `run` once after `ms` milliseconds. A pending timer does not keep the process alive. */
  after(ms: number, run: () => void): Timer
  /** Calls `run` every `ms` milliseconds until cancelled. */
  every(ms: number, run: () => void): Timer
  /** Calls `run` after pending I/O of this turn has been seen. */
  soon(run: () => void): void
}

/** The kernel's clock since boot, which no one sets: the same for every process until the machine goes down. */
export interface BootClock {
  /** To the millisecond. */
  seconds(): number
}

export const systemBootClock: BootClock = {
  seconds: () => Number(process.hrtime.bigint() / 1_000_000n) / 1000,
}

/** How far `systemClock.now()` is behind CLOCK_MONOTONIC, in milliseconds: measured where least time passed meanwhile. */
const BEHIND = Array.from({ length: 5 }, () => {
  const before = performance.now()
  const [seconds, nanoseconds] = process.hrtime()
  const took = performance.now() - before
  return { took, by: seconds * 1000 + nanoseconds / 1e6 - before - took / 2 }
}).reduce((least, each) => (each.took < least.took ? each : least)).by

/** What `systemClock.now()` said at a time of CLOCK_MONOTONIC in milliseconds, which may be before the process began. */
export function atMonotonic(milliseconds: number): number {
  return milliseconds - BEHIND
}

/** Most timers and sockets keep no process alive: this does, until it is cancelled. */
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
