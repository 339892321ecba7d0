// Where a successor knocks: a socket beside the admin socket, its owner's alone. One is let in at a time.

import { rmSync } from 'node:fs'
import { UnavailableError } from '../core/errors.ts'
import { errnoName, isBuilt, loadPosix, type Posix } from '../native/native.ts'

const ENDING = '.take-over'
const ECONNREFUSED = -111
const ENOENT = -2

export function doorOf(adminSocket: string): string {
  return `${adminSocket}${ENDING}`
}

export class Door {
  readonly #posix: Posix
  readonly #path: string
  readonly #fd: number
  readonly #watch: object | number
  #isOpen = true

  /** `onKnock` gets a connection, its own from then on. Throws UnavailableError when nobody could knock. */
  constructor(path: string, onKnock: (descriptor: number) => void) {
    if (!isBuilt('posix')) throw new UnavailableError('the native part is not built')
    const posix = loadPosix()
    this.#posix = posix
    this.#path = path
    // Whoever had it before us is dead or has shut it, or we would not have our locks.
    rmSync(path, { force: true })
    this.#fd = posix.localListen(path)
    if (this.#fd < 0) throw new UnavailableError(`${path}: ${errnoName(this.#fd)}`)
    this.#watch = posix.linkWatch(this.#fd, () => {
      for (let fd = posix.localAccept(this.#fd); fd >= 0; fd = posix.localAccept(this.#fd)) {
        if (mayEnter(posix, fd)) onKnock(fd)
        else posix.closeFd(fd)
      }
    })
  }

  close(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    rmSync(this.#path, { force: true })
    if (typeof this.#watch === 'object') this.#posix.linkUnwatch(this.#watch)
    this.#posix.closeFd(this.#fd)
  }
}

/** The same user, or root. */
function mayEnter(posix: Posix, fd: number): boolean {
  const peer = posix.localPeer(fd)
  return typeof peer !== 'number' && (peer[1] === 0 || peer[1] === process.geteuid?.())
}

/** A connection to the daemon that is to be taken over; throws UnavailableError when there is none. */
export function knock(adminSocket: string): number {
  const posix = loadPosix()
  const path = doorOf(adminSocket)
  const fd = posix.localConnect(path)
  if (fd >= 0) return fd
  const isNobody = fd === ENOENT || fd === ECONNREFUSED
  const reason = isNobody ? 'no daemon answers there: start without --take-over' : errnoName(fd)
  throw new UnavailableError(`Cannot take over by ${path}: ${reason}`)
}
