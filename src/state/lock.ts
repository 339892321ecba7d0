// One daemon per state folder and pin path: a flock that the kernel releases with the process, so that a stale file never
// blocks. A second start fails with the pid of the owner.

import { createHash } from 'node:crypto'
import { accessSync, constants, existsSync, realpathSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { messageOf, systemCodeOf, UnavailableError } from '../core/errors.ts'
import { takeLock, type HeldLock, type LockResult } from '../native/lock.ts'
import type { Posix } from '../native/native.ts'
import { makeFolder } from './files/disk.ts'

const FOLDER = '/run/namegate'
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

/**
 * The lock of this network namespace's nftables rules. An ordinary user has his own namespaces, and his lock is in his folder
 * below /tmp. A service may be able to write to its folder in /run alone, and its /tmp may be private.
 */
export function tableLockFile(): string {
  const name = `nftables-${statSync('/proc/self/ns/net').ino}.lock`
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
export function lockOrFail(posix: Posix, file: string, what: string, act = 'start'): HeldLock {
  const result = tryLock(posix, file, what)
  if (result.kind === 'held') return result
  const owner = `the namegate with pid ${result.holder ?? 'unknown'}`
  throw new UnavailableError(
    `Cannot ${act}: ${what} is in use by ${owner}: stop it, or use another one`,
  )
}

function tryLock(posix: Posix, file: string, what: string): LockResult {
  try {
    makeFolder(dirname(file))
    return takeLock(posix, file, process.pid)
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
