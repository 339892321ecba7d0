// One daemon per state folder and pin path: a flock on a file, which the kernel drops with the process, so
// a stale file never blocks. The file holds the pid of its owner for the message that a second start gives.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { UnavailableError } from '../core/errors.ts'
import { errnoName, type Posix } from '../native/native.ts'

/** Takes the lock until the process ends; throws UnavailableError that names the owner. */
export function takeLock(posix: Pick<Posix, 'lock'>, file: string, what: string): void {
  mkdirSync(dirname(file), { recursive: true })
  const fd = posix.lock(file)
  if (fd >= 0) {
    writeFileSync(file, `${process.pid}\n`)
    return
  }
  const code = errnoName(fd)
  if (code !== 'EAGAIN' && code !== 'EWOULDBLOCK') {
    throw new UnavailableError(`Cannot lock ${file}: ${code}`)
  }
  const owner = readFileSync(file, 'utf8').trim()
  throw new UnavailableError(
    `Cannot start: ${what} is in use by the namegate with pid ${owner}: stop it, or use another one`,
  )
}
