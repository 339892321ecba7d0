// One daemon per state folder and pin path or table. Locks are the kernel's, so none outlives its daemon; they can be
// handed to the daemon that goes on, and then nobody can come between.

import { resolve } from 'node:path'
import type { Config } from '../config/config.ts'
import { ensurePinDirectory } from '../datapath/ebpf/maps/bpffs.ts'
import { FolderLock } from './folder-lock.ts'
import { takeOnLock, type HeldLock } from '../native/lock.ts'
import { isBuilt, loadPosix, type Posix } from '../native/native.ts'
import { lockOrFail, pinLockFile, tableLockFile } from '../state/lock.ts'
import type { Log } from '../telemetry/log.ts'

export class Locks {
  /** Of the state folder; undefined where none is kept, or without the native part. */
  readonly folder: FolderLock | undefined
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
    const take = (file: string, what: string): HeldLock => takeOneOf(posix, left, file, what)
    try {
      if (keepsState) this.folder = new FolderLock(posix, folder, take, log)
      if (config.datapath.kind === 'ebpf') {
        const { pinPath } = config.datapath
        // Mounts the bpffs where it has to be, whose lock it then is.
        ensurePinDirectory(posix, pinPath)
        this.#held.push(take(pinLockFile(pinPath), `pin path ${pinPath}`))
      } else if (config.datapath.kind === 'nftables') {
        this.#held.push(take(tableLockFile(), 'the nftables table of this network namespace'))
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
    const held = this.folder?.held === undefined ? this.#held : [this.folder.held, ...this.#held]
    if (held.length === 0) return []
    const posix = loadPosix()
    return held.map(({ descriptor }) => posix.duplicate(descriptor))
  }

  release(): void {
    this.folder?.release()
    for (const { release } of this.#held.splice(0)) release()
  }
}

/** One that was given, which then is not among those any more; else it is taken. */
function takeOneOf(posix: Posix, given: Set<number>, file: string, what: string): HeldLock {
  for (const descriptor of given) {
    if (!takeOnLock(descriptor, file, process.pid)) continue
    given.delete(descriptor)
    return { descriptor, release: () => posix.closeFd(descriptor) }
  }
  return lockOrFail(posix, file, what)
}
