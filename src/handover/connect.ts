// The socket where a successor connects: beside the admin socket, for the same user and root only. A socket file that
// is removed is made anew.

import { mkdirSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { StandingSocket, type OnRemoved } from '../admin/standing-socket.ts'
import type { Clock } from '../core/clock.ts'
import { UnavailableError } from '../core/errors.ts'
import { errnoName, isBuilt, loadPosix, type Posix } from '../native/native.ts'

const SUFFIX = '.take-over'
const ECONNREFUSED = -111
const ENOENT = -2

export function connectPathOf(adminSocket: string): string {
  return `${adminSocket}${SUFFIX}`
}

export interface ConnectSocketOptions {
  readonly path: string
  readonly clock: Clock
  /** Receives a connection and closes it. */
  readonly onConnect: (descriptor: number) => void
  readonly onRemoved?: OnRemoved
}

/** The listening descriptor and its watch. */
interface Listening {
  readonly fd: number
  readonly watch: object | number
}

export class ConnectSocket {
  readonly #posix: Posix
  readonly #to: ConnectSocketOptions
  readonly #standing: StandingSocket
  #listening: Listening
  #isOpen = true

  /** Throws UnavailableError when it cannot listen. */
  constructor(options: ConnectSocketOptions) {
    if (!isBuilt('posix')) throw new UnavailableError('the native part is not built')
    const { path, clock, onRemoved } = options
    this.#posix = loadPosix()
    this.#to = options
    // The daemon that made this file has ended or closed it: we hold its locks.
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
    const { path, onConnect } = this.#to
    const fd = posix.localListen(path)
    if (fd < 0) throw new UnavailableError(`${path}: ${errnoName(fd)}`)
    const watch = posix.linkWatch(fd, () => {
      for (let peer = posix.localAccept(fd); peer >= 0; peer = posix.localAccept(fd)) {
        if (mayConnect(posix, peer)) onConnect(peer)
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

/** Whether the peer is the same user or root. */
function mayConnect(posix: Posix, fd: number): boolean {
  const peer = posix.localPeer(fd)
  return typeof peer !== 'number' && (peer[1] === 0 || peer[1] === process.geteuid?.())
}

/** A connection to the daemon that is to be taken over; throws UnavailableError when there is none. */
export function connectToDaemon(adminSocket: string): number {
  const posix = loadPosix()
  const path = connectPathOf(adminSocket)
  const fd = posix.localConnect(path)
  if (fd >= 0) return fd
  const isAbsent = fd === ENOENT || fd === ECONNREFUSED
  const reason = isAbsent ? 'no daemon answers there: start without --take-over' : errnoName(fd)
  throw new UnavailableError(`Cannot take over by ${path}: ${reason}`)
}
