// Opens a state folder: reads it once at the start and returns the store that writes it.

import { readFileSync } from 'node:fs'
import type { BootClock, Clock } from '../core/clock.ts'
import { type Disk, guardedDisk, openDisk } from './files/disk.ts'
import type { StateFault } from './faults.ts'
import { readState, type ReadState } from './read-state.ts'
import { stampOf } from './stamp.ts'
import { StateStore } from './state-store.ts'

export interface OpenStateOptions {
  readonly folder: string
  readonly clock: Clock
  readonly boot: BootClock
  /** `limits.pairs` */
  readonly pairsMax: number
  /** Throws while another process owns the folder. */
  readonly mayWrite?: () => void
  readonly onFault: (fault: StateFault) => void
  readonly disk?: Disk
}

export interface OpenedState {
  readonly read: ReadState
  readonly store: StateStore
}

export function openState(options: OpenStateOptions): OpenedState {
  const { folder, clock, boot, pairsMax, onFault } = options
  const disk = guardedDisk(options.disk ?? openDisk(folder), options.mayWrite ?? (() => undefined))
  const bootId = readBootId()
  const read = readState({ disk, pairsMax, now: { ...stampOf(clock, boot), bootId } })
  return { read, store: new StateStore({ disk, clock, boot, bootId, read, onFault }) }
}

/** The id of the current boot, 16 octets; zeros where the kernel reports none. */
export function readBootId(): Uint8Array {
  try {
    const text = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').replace(/[^0-9a-f]/g, '')
    return text.length === 32 ? Buffer.from(text, 'hex') : new Uint8Array(16)
  } catch {
    return new Uint8Array(16)
  }
}
