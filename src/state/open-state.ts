// A state folder as composition uses it: read once at the start, then written.

import { readFileSync } from 'node:fs'
import type { BootClock, Clock } from '../core/clock.ts'
import { guardedDisk, openDisk, type Disk } from './files/disk.ts'
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
  /** Throws as long as the folder is not ours to write. */
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

/** Which boot of which machine this is, 16 octets; zeros, which are no boot, where the kernel does not say. */
export function readBootId(): Uint8Array {
  try {
    const text = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').replace(/[^0-9a-f]/g, '')
    return text.length === 32 ? Buffer.from(text, 'hex') : new Uint8Array(16)
  } catch {
    return new Uint8Array(16)
  }
}
