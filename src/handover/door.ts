// Where a successor knocks: a socket beside the admin socket, its owner's alone. One is let in at a time. A socket file that
// somebody removed is made anew.

import { mkdirSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { StandingSocket, type OnRemoved } from '../admin/standing-socket.ts'
import type { Clock } from '../core/clock.ts'
import { UnavailableError } from '../core/errors.ts'
import { errnoName, isBuilt, loadPosix, type Posix } from '../native/native.ts'

const ENDING = '.take-over'
const ECONNREFUSED = -111
const ENOENT = -2

export function doorOf(adminSocket: string): string {
  return `${adminSocket}${ENDING}`
}

export interface DoorOptions {
  readonly path: string
  readonly clock: Clock
  /** Gets a connection, its own from then on. */
  readonly onKnock: (descriptor: number) => void
  readonly onRemoved?: OnRemoved
}

/** What listens. */
interface Listening {
  readonly fd: number
  readonly watch: object | number
}

export class Door {
  readonly #posix: Posix
  readonly #to: DoorOptions
  readonly #standing: StandingSocket
  #listening: Listening
  #isOpen = true

  /** Throws UnavailableError when nobody could knock. */
  constructor(options: DoorOptions) {
    if (!isBuilt('posix')) throw new UnavailableError('the native part is not built')
    const { path, clock, onRemoved } = options
    this.#posix = loadPosix()
    this.#to = options
    // Whoever had it before us is dead or has shut it, or we would not have our locks.
    rmSync(path, { force: true })
    this.#listening = this.#listen()
    this.#standing = new StandingSocket({ path, clock, renew: () => this.#renew(), onRemoved })
  }

  close(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    void this.#standing.stop()
    rmSync(this.#to.path, { force: true })
    this.#end(this.#listening)
  }

  #listen(): Listening {
    const posix = this.#posix
    const { path, onKnock } = this.#to
    const fd = posix.localListen(path)
    if (fd < 0) throw new UnavailableError(`${path}: ${errnoName(fd)}`)
    const watch = posix.linkWatch(fd, () => {
      for (let peer = posix.localAccept(fd); peer >= 0; peer = posix.localAccept(fd)) {
        if (mayEnter(posix, peer)) onKnock(peer)
        else posix.closeFd(peer)
      }
    })
    return { fd, watch }
  }

  #renew(): void {
    const { path } = this.#to
    mkdirSync(dirname(path), { recursive: true, mode: 0o755 })
    const before = this.#listening
    this.#listening = this.#listen()
    this.#end(before)
  }

  #end({ fd, watch }: Listening): void {
    if (typeof watch === 'object') this.#posix.linkUnwatch(watch)
    this.#posix.closeFd(fd)
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
