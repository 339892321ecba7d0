// `makeRunFolder` makes the folder for the files of one run of `namegate exec`. The folder exists until the command has started, and is
// locked while the run uses it. A run that was killed leaves its folder without a lock, and the next run removes this folder
// (`sweepRunFolders`). A folder stays in place if it is locked, is younger than a minute, belongs to another user, or has another form.

import { lstatSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Clock } from '../core/clock.ts'
import type { Posix } from '../native/native.ts'

export interface RunFolder {
  readonly path: string
  /** Removes the folder and releases its lock. Later calls do nothing. */
  remove(): void
}

const BEGIN = 'namegate-exec-'
const LOCK = 'lock'
/** Younger folders are not removed, because a run makes its folder a moment before it locks the folder. */
const YOUNG_MS = 60_000

type Locks = Pick<Posix, 'lock' | 'closeFd'>

/** Makes and locks a folder below `top`. Throws the error of the system if the folder cannot be made. */
export function makeRunFolder(posix: Locks, top = tmpdir()): RunFolder {
  const path = mkdtempSync(join(top, BEGIN))
  // If the lock file cannot be made, no later run will remove the folder.
  let fd = posix.lock(join(path, LOCK))
  return {
    path,
    remove: () => {
      rmSync(path, { recursive: true, force: true })
      if (fd >= 0) posix.closeFd(fd)
      fd = -1
    },
  }
}

/** Removes folders of earlier runs below `top`. If a folder cannot be read or removed, it stays, and no error is thrown. */
export function sweepRunFolders(posix: Locks, clock: Clock, top = tmpdir()): void {
  try {
    for (const name of readdirSync(top))
      if (name.startsWith(BEGIN)) sweep(posix, clock, join(top, name))
  } catch {
    // `top` cannot be listed, so nothing is removed.
  }
}

function sweep(posix: Locks, clock: Clock, folder: string): void {
  try {
    const stats = lstatSync(folder)
    const lock = join(folder, LOCK)
    const isOld = clock.wall() - stats.mtimeMs > YOUNG_MS
    const isOurs = stats.isDirectory() && stats.uid === process.geteuid?.()
    if (!isOld || !isOurs || !lstatSync(lock).isFile()) return
    const fd = posix.lock(lock)
    if (fd < 0) return
    rmSync(folder, { recursive: true, force: true })
    posix.closeFd(fd)
  } catch {
    // Another run removed the folder, or no run made it.
  }
}
