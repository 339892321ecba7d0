// One daemon per state folder and pin path: a flock that the kernel drops with the process, so a stale file
// never blocks. A second start is told who has it.

import { createHash } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { UnavailableError } from '../core/errors.ts'
import { takeLock } from '../native/lock.ts'
import type { Posix } from '../native/native.ts'

/** The lock of a pin path; not beside the pins, because bpffs takes no files. */
export function pinLockFile(pinPath: string): string {
  const name = createHash('sha256').update(pinPath).digest('hex').slice(0, 16)
  return `/run/namegate/${name}.lock`
}

/** Takes the lock until the process ends; throws UnavailableError that names the owner. */
export function lockOrFail(posix: Posix, file: string, what: string): void {
  mkdirSync(dirname(file), { recursive: true })
  const result = takeLock(posix, file, process.pid)
  if (result.kind === 'held') return
  const owner = `the namegate with pid ${result.holder ?? 'unknown'}`
  throw new UnavailableError(
    `Cannot start: ${what} is in use by ${owner}: stop it, or use another one`,
  )
}
