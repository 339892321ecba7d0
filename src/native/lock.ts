// A lock is an exclusive flock(2) on a file that names its holder. The kernel releases the lock when the process ends in any way,
// so a stale file never blocks. state/lock.ts lists the lock files.

import { fstatSync, ftruncateSync, readFileSync, statSync, unlinkSync, writeSync } from 'node:fs'
import { systemCodeOf, UnavailableError } from '../core/errors.ts'
import { errnoName, type Posix } from './native.ts'

export interface HeldLock {
  readonly descriptor: number
  readonly release: () => void
}

export type LockResult =
  | ({ readonly kind: 'held' } & HeldLock)
  /** `holder` is the process id, or undefined if the file does not name it. */
  | ({ readonly kind: 'taken' } & Holder)

/** `about` is what the holder wrote beside its process id. */
export interface Holder {
  readonly holder: number | undefined
  readonly about?: string
}

const EWOULDBLOCK = -11
const EACCES = -13

/** How often the lock is taken on a new file, because another process removed the file after it was opened. */
const REMOVED_MAX = 8

/** Takes the lock if it is free; never waits. The file remains after the lock is released, until `removeFreeLock`. */
export function takeLock(posix: Posix, path: string, pid: number, about = ''): LockResult {
  let fd = posix.lock(path)
  for (let n = 0; n < REMOVED_MAX && fd >= 0 && !isLockAt(fd, path); n++) {
    posix.closeFd(fd)
    fd = posix.lock(path)
  }
  if (fd === EWOULDBLOCK) return { kind: 'taken', ...readHolder(path) }
  if (fd < 0) {
    const remedy = fd === EACCES ? ': run as root, or as the user whose it is' : ''
    const code = errnoName(fd)
    const cause = Object.assign(new Error(code), { code })
    throw new UnavailableError(`Cannot lock ${path}: ${code}${remedy}`, { cause })
  }
  note(fd, pid, about)
  return { kind: 'held', descriptor: fd, release: () => posix.closeFd(fd) }
}

/**
 * Removes the file of a lock that no process holds. The file goes while this process holds the lock. A process that opened the file before
 * finds in `takeLock` that its file is gone, and takes the lock on a new one. So two processes never hold the lock on two files.
 */
export function removeFreeLock(posix: Posix, path: string): void {
  const fd = posix.lock(path)
  if (fd < 0) return
  try {
    if (isLockAt(fd, path)) unlinkSync(path)
  } finally {
    posix.closeFd(fd)
  }
}

/** True if `fd`, which another process opened, is the lock at `path`. Then it writes this process's id into the file. */
export function takeOnLock(fd: number, path: string, pid: number, about = ''): boolean {
  if (!isLockAt(fd, path)) return false
  note(fd, pid, about)
  return true
}

/** True if the descriptor belongs to the file that is at `path` now. */
export function isLockAt(fd: number, path: string): boolean {
  const [held, own] = [fstatSync(fd), statSync(path, { throwIfNoEntry: false })]
  return own !== undefined && own.ino === held.ino && own.dev === held.dev
}

/** Writes the holder into the file. On a full or read-only disk the lock holds without this text. */
function note(fd: number, pid: number, about: string): void {
  try {
    ftruncateSync(fd)
    writeSync(fd, about === '' ? `${pid}\n` : `${pid}\n${about}\n`, 0)
  } catch {
    // An error about this lock then names no pid, or the pid of an earlier holder.
  }
}

function readHolder(path: string): Holder {
  const [pid = '', about = ''] = textIn(path).trim().split('\n')
  const holder = /^[0-9]{1,10}$/.test(pid) ? Number(pid) : undefined
  return about === '' ? { holder } : { holder, about }
}

/** The text of the file. Empty if the holder was a process that removed the file (`removeFreeLock`). */
function textIn(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return ''
    throw error
  }
}
