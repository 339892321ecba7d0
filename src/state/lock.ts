// This file names and takes lock files. With them only one daemon uses a state folder, a pin path or a table, and only one process at a
// time changes interception. The code in native/lock.ts takes the lock. The kernel releases a lock when its process ends. An error names
// the process that holds the lock.

import { createHash } from 'node:crypto'
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  statSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { messageOf, systemCodeOf, UnavailableError } from '../core/errors.ts'
import {
  removeFreeLock,
  takeLock,
  type HeldLock,
  type Holder,
  type LockResult,
} from '../native/lock.ts'
import { loadPosix, type Posix } from '../native/native.ts'
import { makeFolder } from '../native/make-folder.ts'

const FOLDER = '/run/namegate'
const EWOULDBLOCK = -11
const PAUSE_MS = 20
const TRIES_MAX = 500
/** How often a daemon tries a taken lock again. A process that removes lock files holds each for less than a millisecond. */
const AGAIN_MAX = 2
/** Error codes of the system when a file is in the place of a folder. */
const FILE_IN_THE_WAY: ReadonlySet<string> = new Set(['EEXIST', 'ENOTDIR'])

/**
 * Returns the lock file of a pin path whose bpffs is mounted. The file is not beside the pins, because bpffs takes no ordinary files. Its
 * name comes from the device of the bpffs and the path inside it. So all paths to the same pins have the same lock.
 */
export function pinLockFile(pinPath: string): string {
  const below: string[] = []
  let top = resolve(pinPath)
  for (; !existsSync(top); top = dirname(top)) below.unshift(basename(top))
  top = realpathSync(top)
  const { dev } = statSync(top)
  for (; top !== dirname(top) && statSync(dirname(top)).dev === dev; top = dirname(top)) {
    below.unshift(basename(top))
  }
  const place = `${dev} ${statSync(top).ino} ${below.join('/')}`
  const name = createHash('sha256').update(place).digest('hex').slice(0, 16)
  return join(FOLDER, `${name}.lock`)
}

/** Returns the lock file for the nftables rules of a network namespace, by its path; by default of this one. */
export function tableLockFile(namespace?: string): string {
  return namespaceLockFile('nftables', namespace)
}

/** Returns the lock file for the one daemon that keeps interception in a network namespace, by its path; by default in this one. */
export function interceptionLockFile(namespace?: string): string {
  return namespaceLockFile('interception', namespace)
}

/**
 * Returns a lock file in FOLDER, because a service can perhaps write only there, and its /tmp can be private. An ordinary user, who cannot
 * write there, has namespaces of his own, so the lock file is in his folder below /tmp.
 */
function namespaceLockFile(what: string, namespace?: string): string {
  const name = `${what}-${namespaceNumber(namespace)}.lock`
  try {
    accessSync(existsSync(FOLDER) ? FOLDER : dirname(FOLDER), constants.W_OK)
    return join(FOLDER, name)
  } catch {
    return join(userFolder(), name)
  }
}

function userFolder(): string {
  return join(tmpdir(), `namegate-${process.getuid?.() ?? 0}`)
}

/**
 * Removes the lock files that no process holds. Each network namespace and pin path has lock files of its own, so without this they would
 * become more and more. A daemon calls this when it has released its locks, and `intercept up` and `down` when they are done.
 */
export function removeFreeLocks(posix: Posix): void {
  for (const folder of [FOLDER, userFolder()]) {
    for (const name of lockFilesIn(folder)) {
      try {
        removeFreeLock(posix, join(folder, name))
      } catch {
        // Another process removed the file, or this user must not. The file does no harm.
      }
    }
  }
}

function lockFilesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder).filter((name) => name.endsWith('.lock'))
  } catch {
    return []
  }
}

/**
 * Takes a lock, which holds until it is released or the process ends. If another process holds the lock, throws UnavailableError with that
 * process and with what this process cannot do.
 */
export function lockOrFail(
  posix: Posix,
  file: string,
  what: string,
  { act = 'start', about = '', otherwise = 'use another one' }: LockTexts = {},
): HeldLock {
  let result = tryLock(posix, file, what, about)
  for (let n = 0; n < AGAIN_MAX && result.kind === 'taken'; n++) {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS)
    result = tryLock(posix, file, what, about)
  }
  if (result.kind === 'held') return result
  const config = result.about === undefined ? '' : ` (config ${result.about})`
  const owner = `the namegate with pid ${result.holder ?? 'unknown'}${config}`
  throw new UnavailableError(
    `Cannot ${act}: ${what} is in use by ${owner}: stop it, or ${otherwise}`,
  )
}

/** Returns true if no process holds the lock. Returns false if the lock file cannot be opened. */
export function isLockFree(file: string): boolean {
  return holderOf(file) === undefined
}

/** Returns what the holder of a lock wrote about itself, if anything. Undefined if no process holds the lock. */
export function holderOf(file: string): Partial<Holder> | undefined {
  if (!existsSync(file)) return undefined
  try {
    const result = takeLock(loadPosix(), file, process.pid)
    if (result.kind === 'taken') return result
    result.release()
    return undefined
  } catch {
    // Perhaps a process holds a lock whose file cannot be opened.
    return {}
  }
}

/** Texts for the error of `lockOrFail`. */
export interface LockTexts {
  /** What this process cannot do, as a verb. */
  readonly act?: string
  /** The configuration of the process that takes the lock. */
  readonly about?: string
  /** A remedy that lets the other process run on. */
  readonly otherwise?: string
}

function tryLock(posix: Posix, file: string, what: string, about: string): LockResult {
  try {
    makeFolder(dirname(file))
    return takeLock(posix, file, process.pid, about)
  } catch (error) {
    const isFile = FILE_IN_THE_WAY.has(systemCodeOf(error) ?? '')
    const remedy = isFile
      ? 'a file stands where a folder is wanted: move it away'
      : 'it must be writable for the user who runs namegate'
    throw new UnavailableError(`Cannot lock ${what}: ${messageOf(error)}: ${remedy}`, {
      cause: error,
    })
  }
}

/** Waits for `ms` milliseconds. A command sleeps, the daemon uses its clock. */
export type Pause = (ms: number) => Promise<void>

/**
 * Runs `work` while no other process of this network namespace changes interception. `intercept up`, `intercept down` and the daemon each
 * change flags, rules and routing in an order that leaks nothing. Two such changes at the same time would break this order. Throws
 * UnavailableError when another process holds the lock for ten seconds.
 */
export async function withInterceptLock<T>(
  posix: Posix,
  pause: Pause,
  work: () => Promise<T>,
): Promise<T> {
  const path = interceptLockFile(posix)
  for (let tries = 1; ; tries++) {
    const lock = takeLock(posix, path, process.pid)
    if (lock.kind === 'held') {
      try {
        return await work()
      } finally {
        lock.release()
      }
    }
    if (tries > TRIES_MAX) {
      const holder = lock.holder === undefined ? 'another process' : `process ${lock.holder}`
      throw new UnavailableError(
        `Cannot change interception: ${holder} is changing it: wait for it, or end it`,
      )
    }
    await pause(PAUSE_MS)
  }
}

/** Returns a lock file in FOLDER. If FOLDER is not writable, as for a sidecar's own user, the file is in the folder for temporary files. */
function interceptLockFile(posix: Posix): string {
  const name = `intercept-${namespaceNumber()}.lock`
  const [path, other] = [join(FOLDER, name), join(tmpdir(), `namegate-${name}`)]
  try {
    mkdirSync(FOLDER, { recursive: true })
  } catch {
    return other
  }
  const fd = posix.lock(path)
  if (fd >= 0) posix.closeFd(fd)
  return fd >= 0 || fd === EWOULDBLOCK ? path : other
}

/** Returns the number of a network namespace; by default of this process's. */
function namespaceNumber(path = '/proc/self/ns/net'): number {
  return statSync(path).ino
}
