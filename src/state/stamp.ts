// A stamp is the time of a write by two clocks. No program can set the seconds since boot, but they begin again with each boot. The wall
// clock continues over a boot, but can be wrong. Times in records are seconds since boot. After a reboot they are translated through the
// wall clock. Remaining times never grow: a wall clock that was set back does not extend them, and one that was set forward shortens them.

import { readFileSync } from 'node:fs'
import type { BootClock, Clock } from '../core/clock.ts'

export interface Stamp {
  /** Whole seconds, rounded down. */
  readonly bootSeconds: number
  /** Milliseconds since the epoch. */
  readonly wallMs: number
}

/** A moment in one boot of one machine. */
export interface Moment extends Stamp {
  /** 16 octets. All zero when the boot is unknown. An unknown boot equals no boot. */
  readonly bootId: Uint8Array
}

export function stampOf(clock: Clock, boot: BootClock): Stamp {
  return { bootSeconds: Math.floor(boot.seconds()), wallMs: clock.wall() }
}

/** Returns the id of the present boot: 16 octets, all zero if the kernel reports none. */
export function readBootId(): Uint8Array {
  try {
    const text = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').replace(/[^0-9a-f]/g, '')
    return text.length === 32 ? Buffer.from(text, 'hex') : new Uint8Array(16)
  } catch {
    return new Uint8Array(16)
  }
}

export function isSameBoot(one: Uint8Array, other: Uint8Array): boolean {
  return one.some((octet) => octet !== 0) && one.every((octet, i) => octet === other[i])
}

/** Returns how many seconds to add to a time in a frame of `written`, to get the time in seconds since the boot of `now`. */
export function shiftOf(written: Stamp, isThisBoot: boolean, now: Stamp): number {
  if (isThisBoot) return 0
  return now.bootSeconds - written.bootSeconds - elapsedSeconds(written, isThisBoot, now)
}

/** Returns the seconds from `written` to `now`, rounded up and at least 0. */
export function elapsedSeconds(written: Stamp, isThisBoot: boolean, now: Stamp): number {
  const seconds = isThisBoot
    ? now.bootSeconds - written.bootSeconds
    : Math.ceil((now.wallMs - written.wallMs) / 1000)
  return Math.max(0, seconds)
}
