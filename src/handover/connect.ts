// ConnectSocket is the local socket to which a successor connects. Its file lies beside the admin socket, and it accepts only the
// daemon's own user and root. If the socket file is removed, ConnectSocket makes it again.

import { rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { StandingSocket, type OnRemoved } from '../admin/standing-socket.ts'
import type { Clock } from '../core/clock.ts'
import { UnavailableError } from '../core/errors.ts'
import { makeFolder } from '../native/make-folder.ts'
import { errnoName, loadPosix, type Posix } from '../native/native.ts'

const SUFFIX = '.take-over'
const ECONNREFUSED = -111
const ENOENT = -2

export function connectPathOf(adminSocket: string): string {
  return `${adminSocket}${SUFFIX}`
}

export interface ConnectSocketOptions {
  readonly path: string
  readonly clock: Clock
  /** Receives the descriptor of each new connection, and must close it. */
  readonly onConnect: (descriptor: number) => void
  readonly onRemoved?: OnRemoved
}

/** The listening descriptor and the watch on it. */
interface Listening {
  readonly fd: number
  readonly watch: object | number
}

export class ConnectSocket {
  readonly #posix: Posix
  readonly #options: ConnectSocketOptions
  readonly #standing: StandingSocket
  #listening: Listening
  #isOpen = true

  /** Throws UnavailableError when it cannot listen. */
  constructor(options: ConnectSocketOptions) {
    const { path, clock, onRemoved } = options
    this.#posix = loadPosix()
    this.#options = options
    // This process holds the locks, so the daemon that made this file has ended or has closed its socket.
    rmSync(path, { force: true })
    this.#listening = this.#listen()
    this.#standing = new StandingSocket({ path, clock, renew: () => this.#renew(), onRemoved })
  }

  close(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    void this.#standing.stop()
    rmSync(this.#options.path, { force: true })
    this.#end(this.#listening)
  }

  #listen(): Listening {
    const posix = this.#posix
    const { path, onConnect } = this.#options
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
    const { path } = this.#options
    makeFolder(dirname(path), 0o755)
    const before = this.#listening
    this.#listening = this.#listen()
    this.#end(before)
  }

  #end({ fd, watch }: Listening): void {
    if (typeof watch === 'object') this.#posix.linkUnwatch(watch)
    this.#posix.closeFd(fd)
  }
}

/** True if the peer is root or has the user of this process. */
function mayConnect(posix: Posix, fd: number): boolean {
  const peer = posix.localPeer(fd)
  return typeof peer !== 'number' && (peer[1] === 0 || peer[1] === process.geteuid?.())
}

/** Connects to the running daemon and returns the descriptor. Throws UnavailableError if no daemon answers. */
export function connectToDaemon(adminSocket: string): number {
  const posix = loadPosix()
  const path = connectPathOf(adminSocket)
  const fd = posix.localConnect(path)
  if (fd >= 0) return fd
  const isAbsent = fd === ENOENT || fd === ECONNREFUSED
  const reason = isAbsent ? 'no daemon answers there: start without --take-over' : errnoName(fd)
  throw new UnavailableError(`Cannot take over by ${path}: ${reason}`)
}
