// The lock of a state folder while a daemon runs. A disk that is full or read-only and a folder that is not ours to write in
// give none, and a folder that is removed takes it along; neither stops anything, but whoever wants to write in the folder
// needs the lock first.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { isLockAt, type HeldLock } from '../native/lock.ts'
import type { Posix } from '../native/native.ts'
import { isRefusal } from '../state/faults.ts'
import { lockOrFail } from '../state/lock.ts'
import type { Log } from '../telemetry/log.ts'

export class FolderLock {
  readonly #posix: Posix
  readonly #file: string
  readonly #what: string
  #held: HeldLock | undefined

  /** `take`: as at the start. Throws UnavailableError when another daemon has it, or it is there and may not be opened. */
  constructor(posix: Posix, folder: string, take: TakeLock, log: Log) {
    this.#posix = posix
    this.#file = join(folder, 'lock')
    this.#what = `state folder ${folder}`
    try {
      this.#held = take(this.#file, this.#what)
    } catch (error) {
      // A lock that is there and not ours to open may be held.
      if (!isRefusal(error) || existsSync(this.#file)) throw error
      log.warn({ reason: String(error) }, 'the state folder takes no lock: nothing is kept in it')
    }
  }

  get held(): HeldLock | undefined {
    return this.#held
  }

  /** Throws UnavailableError, which names the daemon that has it, as long as it is not ours. */
  need(): void {
    this.#held ??= lockOrFail(this.#posix, this.#file, this.#what, 'keep anything')
  }

  /** Lets go of one that is not in the folder any more, where anybody may have taken another; whether it was so. */
  hasStrayed(): boolean {
    if (this.#held === undefined || isInPlace(this.#held, this.#file)) return false
    this.release()
    return true
  }

  release(): void {
    this.#held?.release()
    this.#held = undefined
  }
}

export type TakeLock = (file: string, what: string) => HeldLock

function isInPlace({ descriptor }: HeldLock, file: string): boolean {
  try {
    return isLockAt(descriptor, file)
  } catch {
    // Nobody can look there now, which says nothing.
    return true
  }
}
