// The folder for the files of one run of `namegate exec`, until the command has started. The folder is locked while the run
// lives. A run that was killed leaves it unlocked, and the next run removes it. Folders that are locked, too young to be locked yet,
// of another user, or not of this form stay.

import { lstatSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Clock } from '../core/clock.ts'
import type { Posix } from '../native/native.ts'

export interface RunFolder {
  readonly path: string
  /** May be called again. */
  remove(): void
}

const BEGIN = 'namegate-exec-'
const LOCK = 'lock'
/** Between a folder and its lock there is a moment. */
const YOUNG_MS = 60_000

type Locks = Pick<Posix, 'lock' | 'closeFd'>

export function makeRunFolder(posix: Locks, top = tmpdir()): RunFolder {
  const path = mkdtempSync(join(top, BEGIN))
  // Without a lock the folder is one that nobody sweeps.
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

/** Leftovers are no reason not to run: whatever cannot be looked at or taken away stays. */
export function sweepRunFolders(posix: Locks, clock: Clock, top = tmpdir()): void {
  try {
    for (const name of readdirSync(top))
      if (name.startsWith(BEGIN)) sweep(posix, clock, join(top, name))
  } catch {
    // The folder of temporary files cannot be listed.
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
    // Another run was faster, or it is no folder of a run.
  }
}
