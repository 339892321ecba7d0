// Takes the locks of a daemon. Only one daemon at a time can have a state folder, a pin path, or the nftables table of a network namespace.
// Only one daemon at a time can keep interception in a network namespace. A lock ends with its process, or the process hands it to the
// successor, so that no third daemon can start between the two.

import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Config } from '../config/config.ts'
import { ensurePinDirectory, removeEmptyPinDirectory } from '../datapath/ebpf/maps/bpffs.ts'
import { isLockAt, takeOnLock, type HeldLock } from '../native/lock.ts'
import { loadPosix, type Posix } from '../native/native.ts'
import { isRefusal } from '../state/faults.ts'
import {
  interceptionLockFile,
  lockOrFail,
  pinLockFile,
  removeFreeLocks,
  tableLockFile,
  type LockTexts,
} from '../state/lock.ts'
import type { Log } from '../telemetry/log.ts'

export class Locks {
  /** The lock of the state folder. Undefined where no state is kept. */
  readonly folder: FolderLock | undefined
  readonly #held: HeldLock[] = []
  readonly #pinPath: string | undefined

  /**
   * Takes every lock that the config needs, or throws UnavailableError and holds none. `given`: descriptors of the predecessor's locks.
   * Descriptors that are not needed are closed.
   */
  constructor(config: Config, log: Log, keepsState: boolean, given: readonly number[] = []) {
    const folder = resolve(config.state.directory)
    const posix = loadPosix()
    const left = new Set(given)
    const take = (file: string, what: string, texts?: LockTexts): HeldLock =>
      takeOneOf(posix, left, file, what, texts)
    try {
      if (keepsState) this.folder = new FolderLock(posix, folder, take, log)
      if (config.datapath.kind === 'ebpf') {
        const { pinPath } = config.datapath
        // Mounts a bpffs at the pin path if there is none, because the lock is named after the mounted file system.
        ensurePinDirectory(posix, pinPath)
        this.#pinPath = pinPath
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

  /** Returns further descriptors of the same locks for the successor. A lock is held as long as one of its descriptors is open. */
  duplicate(): readonly number[] {
    const held = this.folder?.held === undefined ? this.#held : [this.folder.held, ...this.#held]
    if (held.length === 0) return []
    const posix = loadPosix()
    return held.map(({ descriptor }) => posix.duplicate(descriptor))
  }

  release(): void {
    this.folder?.release()
    const held = this.#held.splice(0)
    // While the lock is held, no other daemon has pins there.
    if (held.length > 0 && this.#pinPath !== undefined) removeEmptyPinDirectory(this.#pinPath)
    for (const { release } of held) release()
    // A successor holds the locks that it was given, so their files stay.
    if (held.length > 0) removeFreeLocks(loadPosix())
  }
}

const INTERCEPTION = 'interception in this network namespace'
const EXPLICIT = 'give this one listeners of mode explicit, or a network namespace of its own'

/** Returns the lock that a given descriptor holds, and removes the descriptor from `given`. If none holds it, takes the lock. */
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
 * The lock of a state folder while a daemon runs. The lock cannot be taken on a full or read-only disk, or in a folder that is not
 * writable. The lock is lost when the folder is removed. In these cases the daemon continues, but it must take the lock before it writes in
 * the folder again.
 */
export class FolderLock {
  readonly #posix: Posix
  readonly #file: string
  readonly #what: string
  #held: HeldLock | undefined

  /** Takes the lock. Throws UnavailableError when another daemon has it, or when the lock file exists but cannot be opened. */
  constructor(posix: Posix, folder: string, take: TakeLock, log: Log) {
    this.#posix = posix
    this.#file = join(folder, 'lock')
    this.#what = `state folder ${folder}`
    try {
      this.#held = take(this.#file, this.#what)
    } catch (error) {
      // If the file exists, another daemon may hold the lock, even when this daemon cannot open the file.
      if (!isRefusal(error) || existsSync(this.#file)) throw error
      log.warn({ reason: String(error) }, 'the state folder takes no lock: nothing is kept in it')
    }
  }

  get held(): HeldLock | undefined {
    return this.#held
  }

  /** Takes the lock if it is not held. Throws UnavailableError that names the daemon that has the lock. */
  need(): void {
    this.#held ??= lockOrFail(this.#posix, this.#file, this.#what, {
      act: 'keep anything',
    })
  }

  /**
   * Releases the lock if its file is no longer in the folder, because another process can then lock a new file. Returns true if it released
   * the lock.
   */
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
    // A folder that cannot be read now does not prove that the file is gone.
    return true
  }
}
