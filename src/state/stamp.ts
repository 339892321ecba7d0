// The time of a write by two clocks: seconds since boot, which no one can set and which end with the boot, and the wall clock,
// which continues and may be wrong. Times in records are seconds since boot. After a reboot they are translated through the wall
// clock, and the remaining time never grows: a clock that was set back extends no time, one that was set forward ends all.

import type { BootClock, Clock } from '../core/clock.ts'

export interface Stamp {
  /** Whole seconds, rounded down. */
  readonly bootSeconds: number
  /** Milliseconds since the epoch. */
  readonly wallMs: number
}

/** A moment in one boot of one machine. */
export interface Moment extends Stamp {
  /** 16 octets; all zero when unknown, which equals no other boot. */
  readonly bootId: Uint8Array
}

export function stampOf(clock: Clock, boot: BootClock): Stamp {
  return { bootSeconds: Math.floor(boot.seconds()), wallMs: clock.wall() }
}

export function isSameBoot(one: Uint8Array, other: Uint8Array): boolean {
  return one.some((octet) => octet !== 0) && one.every((octet, i) => octet === other[i])
}

/** The seconds to add to a time written at `written`, so that it counts from the boot of `now`. */
export function shiftOf(written: Stamp, isThisBoot: boolean, now: Stamp): number {
  if (isThisBoot) return 0
  return now.bootSeconds - written.bootSeconds - elapsedSeconds(written, isThisBoot, now)
}

/** Seconds from then to now, rounded up, at least 0. */
export function elapsedSeconds(written: Stamp, isThisBoot: boolean, now: Stamp): number {
  const seconds = isThisBoot
    ? now.bootSeconds - written.bootSeconds
    : Math.ceil((now.wallMs - written.wallMs) / 1000)
  return Math.max(0, seconds)
}
