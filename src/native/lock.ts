// A lock is an exclusive flock(2) on a file that names its holder. The kernel releases the lock when the process ends in any way,
// so a stale file never blocks. state/lock.ts lists the lock files.

import { fstatSync, ftruncateSync, readFileSync, statSync, writeSync } from 'node:fs'
import { UnavailableError } from '../core/errors.ts'
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
interface Holder {
  readonly holder: number | undefined
  readonly about?: string
}

const EWOULDBLOCK = -11
const EACCES = -13

/** Takes the lock if it is free; never waits. The file remains after the lock is released. */
export function takeLock(posix: Posix, path: string, pid: number, about = ''): LockResult {
  const fd = posix.lock(path)
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
  const [pid = '', about = ''] = readFileSync(path, 'utf8').trim().split('\n')
  const holder = /^[0-9]{1,10}$/.test(pid) ? Number(pid) : undefined
  return about === '' ? { holder } : { holder, about }
}
