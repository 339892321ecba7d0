// One at a time: `intercept up`, `down` and the daemon each change flags, rules and routing in an order that leaks
// nothing, and only if nobody else changes them meanwhile. A lock for each network namespace, given back by the
// kernel when its holder ends in any way.

import { mkdirSync, readlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { UnavailableError } from '../core/errors.ts'
import { takeLock } from '../native/lock.ts'
import type { Posix } from '../native/native.ts'

const FOLDER = '/run/namegate'
const EWOULDBLOCK = -11
const PAUSE_MS = 20
const TRIES_MAX = 500

/** Waits so many milliseconds: a command by sleeping, the daemon with its clock. */
export type Pause = (ms: number) => Promise<void>

/** Runs `work` alone. Throws UnavailableError when another one is at it for ten seconds. */
export async function withInterceptLock<T>(
  posix: Posix,
  pause: Pause,
  work: () => Promise<T>,
): Promise<T> {
  const path = lockPath(posix)
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

/** Where the lock is; the second place is for who may not write to the first, such as a sidecar's own user. */
function lockPath(posix: Posix): string {
  // `net:[4026531840]` names the namespace of this process.
  const [number = ''] = /\d+/.exec(readlinkSync('/proc/self/ns/net')) ?? []
  const path = join(FOLDER, `intercept-${number}.lock`)
  try {
    mkdirSync(FOLDER, { recursive: true })
  } catch {
    return join(tmpdir(), `namegate-intercept-${number}.lock`)
  }
  const fd = posix.lock(path)
  if (fd >= 0) posix.closeFd(fd)
  return fd >= 0 || fd === EWOULDBLOCK ? path : join(tmpdir(), `namegate-intercept-${number}.lock`)
}
