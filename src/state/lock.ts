// Lock files and how they are taken: one daemon for each state folder, pin path and table, and one process at a time that
// changes interception. native/lock.ts takes the lock itself, which the kernel releases with its process. An error names the
// holder.

import { createHash } from 'node:crypto'
import { accessSync, constants, existsSync, mkdirSync, realpathSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { messageOf, systemCodeOf, UnavailableError } from '../core/errors.ts'
import { takeLock, type HeldLock, type LockResult } from '../native/lock.ts'
import type { Posix } from '../native/native.ts'
import { makeFolder } from './files/disk.ts'

const FOLDER = '/run/namegate'
const EWOULDBLOCK = -11
const PAUSE_MS = 20
const TRIES_MAX = 500
/** Codes of the system for a file in the place of a folder. */
const FILE_IN_THE_WAY: ReadonlySet<string> = new Set(['EEXIST', 'ENOTDIR'])

/**
 * The lock of a pin path whose bpffs is mounted. It is not beside the pins, because bpffs takes no files. Its name comes from the
 * device of the bpffs and the path inside it, so that every path to the same bpffs has the same lock.
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

/** The lock of this network namespace's nftables rules. */
export function tableLockFile(): string {
  return namespaceLockFile('nftables')
}

/** The lock of the one daemon that keeps interception in this network namespace. */
export function interceptionLockFile(): string {
  return namespaceLockFile('interception')
}

/**
 * An ordinary user has his own namespaces, and his lock is in his folder below /tmp. A service may be able to write to its folder
 * in /run alone, and its /tmp may be private.
 */
function namespaceLockFile(what: string): string {
  const name = `${what}-${namespaceNumber()}.lock`
  try {
    accessSync(existsSync(FOLDER) ? FOLDER : dirname(FOLDER), constants.W_OK)
    return join(FOLDER, name)
  } catch {
    return join(tmpdir(), `namegate-${process.getuid?.() ?? 0}`, name)
  }
}

/**
 * Takes the lock until it is released or the process ends. Throws UnavailableError with the owner and the act that it prevents.
 */
export function lockOrFail(
  posix: Posix,
  file: string,
  what: string,
  { act = 'start', about = '', otherwise = 'use another one' }: LockTexts = {},
): HeldLock {
  const result = tryLock(posix, file, what, about)
  if (result.kind === 'held') return result
  const config = result.about === undefined ? '' : ` (config ${result.about})`
  const owner = `the namegate with pid ${result.holder ?? 'unknown'}${config}`
  throw new UnavailableError(
    `Cannot ${act}: ${what} is in use by ${owner}: stop it, or ${otherwise}`,
  )
}

/** `about`: the config of the process that takes the lock; `otherwise`: the remedy that leaves the owner running. */
export interface LockTexts {
  readonly act?: string
  readonly about?: string
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

/** Waits so many milliseconds: a command by sleeping, the daemon with its clock. */
export type Pause = (ms: number) => Promise<void>

/**
 * Runs `work` while no other process of this network namespace changes interception: `intercept up`, `down` and the daemon each
 * change flags, rules and routing in an order that leaks nothing. Throws UnavailableError when another process holds the
 * lock for ten seconds.
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
        `Cannot change interception: ${holder} is at it: wait for it, or end it`,
      )
    }
    await pause(PAUSE_MS)
  }
}

/** In FOLDER; in the folder for temporary files where FOLDER is not writable, as for a sidecar's own user. */
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

/** The number of this process's network namespace. */
function namespaceNumber(): number {
  return statSync('/proc/self/ns/net').ino
}
