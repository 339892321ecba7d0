// One daemon per state folder and pin path: a flock that the kernel drops with the process, so a stale file
// never blocks. A second start is told who has it.

import { createHash } from 'node:crypto'
import { accessSync, constants, existsSync, realpathSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { messageOf, systemCodeOf, UnavailableError } from '../core/errors.ts'
import { takeLock, type HeldLock, type LockResult } from '../native/lock.ts'
import type { Posix } from '../native/native.ts'
import { makeFolder } from './files/make-folder.ts'

const FOLDER = '/run/namegate'
/** What the system says where there is a file in the place of a folder. */
const FILE_IN_THE_WAY: ReadonlySet<string> = new Set(['EEXIST', 'ENOTDIR'])

/**
 * The lock of a pin path whose bpffs is mounted; not beside the pins, because bpffs takes no files. It goes by the device of the
 * bpffs and the path inside of it: another path to the same bpffs has the same lock, another bpffs at the same path another one.
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
 * The lock of this network namespace's nftables rules; of an ordinary user, whose namespaces are his own, in his folder. Of a
 * service the folder in /run may be all that it can write to, and its /tmp one that nobody else sees.
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
 * Takes the lock until it is released or the process ends; throws UnavailableError that names the owner, and what cannot be
 * done for that reason.
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
