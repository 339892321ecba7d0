// One daemon for each state folder, for each pin path or table, and one that keeps interception in a network namespace. A lock
// ends with its process, or is handed to the successor, so that no other daemon can start in between.

import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Config } from '../config/config.ts'
import { ensurePinDirectory } from '../datapath/ebpf/maps/bpffs.ts'
import { isLockAt, takeOnLock, type HeldLock } from '../native/lock.ts'
import { isBuilt, loadPosix, type Posix } from '../native/native.ts'
import { isRefusal } from '../state/faults.ts'
import {
  interceptionLockFile,
  lockOrFail,
  pinLockFile,
  tableLockFile,
  type LockTexts,
} from '../state/lock.ts'
import type { Log } from '../telemetry/log.ts'

export class Locks {
  /** Of the state folder; undefined where no state is kept, or without the native part. */
  readonly folder: FolderLock | undefined
  readonly #held: HeldLock[] = []

  /**
   * Takes every lock that the config asks for, or none: throws UnavailableError. `given`: descriptors of the daemon before, closed
   * here when they are not needed. Without the native part there is no lock, and the log says so.
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
    const take = (file: string, what: string, texts?: LockTexts): HeldLock =>
      takeOneOf(posix, left, file, what, texts)
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
      if (config.listeners.some(({ mode }) => mode !== 'explicit')) {
        const texts = { about: config.file, otherwise: EXPLICIT }
        this.#held.push(take(interceptionLockFile(), INTERCEPTION, texts))
      }
    } catch (error) {
      this.release()
      throw error
    } finally {
      for (const fd of left) posix.closeFd(fd)
    }
  }

  /** More descriptors of the same locks, for the successor: a lock is held as long as one descriptor is open. */
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

const INTERCEPTION = 'interception in this network namespace'
const EXPLICIT = 'give this one listeners of mode explicit, or a network namespace of its own'

/** The given descriptor that is this lock, removed from `given`; else the lock is taken. */
function takeOneOf(
  posix: Posix,
  given: Set<number>,
  file: string,
  what: string,
  texts?: LockTexts,
): HeldLock {
  for (const descriptor of given) {
    if (!takeOnLock(descriptor, file, process.pid, texts?.about)) continue
    given.delete(descriptor)
    return { descriptor, release: () => posix.closeFd(descriptor) }
  }
  return lockOrFail(posix, file, what, texts)
}

/**
 * The lock of a state folder while a daemon runs. A disk that is full or read-only and a folder that is not writable allow
 * no lock, and a folder that is removed takes its lock along; neither stops the daemon, but a write in the folder needs the
 * lock first.
 */
export class FolderLock {
  readonly #posix: Posix
  readonly #file: string
  readonly #what: string
  #held: HeldLock | undefined

  /** Throws UnavailableError when another daemon has the lock, or the file may not be opened. */
  constructor(posix: Posix, folder: string, take: TakeLock, log: Log) {
    this.#posix = posix
    this.#file = join(folder, 'lock')
    this.#what = `state folder ${folder}`
    try {
      this.#held = take(this.#file, this.#what)
    } catch (error) {
      // Another daemon may hold a lock file that we may not open.
      if (!isRefusal(error) || existsSync(this.#file)) throw error
      log.warn({ reason: String(error) }, 'the state folder takes no lock: nothing is kept in it')
    }
  }

  get held(): HeldLock | undefined {
    return this.#held
  }

  /** Takes the lock unless it is held; throws UnavailableError with the daemon that has it. */
  need(): void {
    this.#held ??= lockOrFail(this.#posix, this.#file, this.#what, {
      act: 'keep anything',
    })
  }

  /** Releases a lock whose file is no longer in the folder, where another process may have made one; returns whether it did. */
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

type TakeLock = (file: string, what: string) => HeldLock

function isInPlace({ descriptor }: HeldLock, file: string): boolean {
  try {
    return isLockAt(descriptor, file)
  } catch {
    // A folder that cannot be read now proves nothing.
    return true
  }
}
