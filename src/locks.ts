// One daemon per state folder and pin path or table. Locks are the kernel's, so none outlives its daemon; they can be
// handed to the daemon that goes on, and then nobody can come between.

import { join, resolve } from 'node:path'
import type { Config } from './config/config.ts'
import { takeOnLock, type HeldLock } from './native/lock.ts'
import { isBuilt, loadPosix, type Posix } from './native/native.ts'
import { lockOrFail, pinLockFile, tableLockFile } from './state/lock.ts'
import type { Log } from './telemetry/log.ts'

export class Locks {
  readonly #held: HeldLock[] = []

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
      if (keepsState) this.#take(posix, join(folder, 'lock'), `state folder ${folder}`, left)
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

  /** More descriptors of the same locks, for who goes on: they are held as long as anybody has one. */
  duplicate(): readonly number[] {
    if (this.#held.length === 0) return []
    const posix = loadPosix()
    return this.#held.map(({ descriptor }) => posix.duplicate(descriptor))
  }

  release(): void {
    for (const { release } of this.#held.splice(0)) release()
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
