// One daemon per state folder and pin path or table. Locks are the kernel's, so none outlives its daemon; they can be
// handed to the daemon that goes on, and then nobody can come between. A state folder that takes no lock because the disk
// is full or read-only stops no start; whoever wants to write there tries for the lock first.

import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Config } from './config/config.ts'
import { takeOnLock, type HeldLock } from './native/lock.ts'
import { isBuilt, loadPosix, type Posix } from './native/native.ts'
import { isRefusal } from './state/faults.ts'
import { lockOrFail, pinLockFile, tableLockFile } from './state/lock.ts'
import type { Log } from './telemetry/log.ts'

export class Locks {
  readonly #held: HeldLock[] = []
  /** Takes the lock that the state folder did not take at the start. */
  #takeLate: (() => void) | undefined

  /**
   * Takes what the config asks for, or all or nothing: throws UnavailableError. `given`: descriptors of a daemon before us, ours
   * from now on. Without the native part there is no lock, and that is said.
   */
  constructor(config: Config, log: Log, keepsState: boolean, given: readonly number[] = []) {
    const folder = resolve(config.state.directory)
    if (!isBuilt('posix')) {
      if (keepsState) {
        log.warn({ path: folder }, 'state folder is not locked: the native part is not built')
      }
      return
    }
    const posix = loadPosix()
    const left = new Set(given)
    try {
      if (keepsState) this.#takeFolder(posix, folder, left, log)
      if (config.datapath.kind === 'ebpf') {
        const { pinPath } = config.datapath
        this.#take(posix, pinLockFile(pinPath), `pin path ${pinPath}`, left)
      } else if (config.datapath.kind === 'nftables') {
        const what = 'the nftables table of this network namespace'
        this.#take(posix, tableLockFile(), what, left)
      }
    } catch (error) {
      this.release()
      throw error
    } finally {
      for (const fd of left) posix.closeFd(fd)
    }
  }

  /** Whether nobody, neither we nor another daemon, can be known to have the state folder alone. */
  get lacksFolder(): boolean {
    return this.#takeLate !== undefined
  }

  /** Throws UnavailableError as long as the state folder is not ours to write. */
  needFolder(): void {
    this.#takeLate?.()
    this.#takeLate = undefined
  }

  /** More descriptors of the same locks, for who goes on: they are held as long as anybody has one. */
  duplicate(): readonly number[] {
    if (this.#held.length === 0) return []
    const posix = loadPosix()
    return this.#held.map(({ descriptor }) => posix.duplicate(descriptor))
  }

  release(): void {
    for (const { release } of this.#held.splice(0)) release()
  }

  #takeFolder(posix: Posix, folder: string, given: Set<number>, log: Log): void {
    const [file, what] = [join(folder, 'lock'), `state folder ${folder}`]
    try {
      this.#take(posix, file, what, given)
    } catch (error) {
      // A lock that is there and not ours to open may be held.
      if (!isRefusal(error) || existsSync(file)) throw error
      this.#takeLate = () => void this.#held.push(lockOrFail(posix, file, what))
      log.warn({ reason: String(error) }, 'the state folder takes no lock: nothing is kept in it')
    }
  }

  #take(posix: Posix, file: string, what: string, given: Set<number>): void {
    for (const descriptor of given) {
      if (!takeOnLock(descriptor, file, process.pid)) continue
      given.delete(descriptor)
      this.#held.push({ descriptor, release: () => posix.closeFd(descriptor) })
      return
    }
    this.#held.push(lockOrFail(posix, file, what))
  }
}
