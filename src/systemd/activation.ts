// Takes and reads the sockets that systemd bound before the start (sd_listen_fds(3)). They outlive the daemon, and queries wait in them
// while no daemon runs. proxy/server/passed-sockets.ts finds the listener of each socket.

import { UnavailableError } from '../core/errors.ts'
import { loadPosix } from '../native/native.ts'
import { readSocket, type PassedSocket } from '../native/passed-socket.ts'

const FIRST_DESCRIPTOR = 3
const SOCKETS_MAX = 256

type Environment = Record<string, string | undefined>

/** Takes the sockets that were passed to this process, and clears the environment. Throws UnavailableError when it cannot use them. */
export function takePassedSockets(environment: Environment, pid: number): readonly PassedSocket[] {
  const { LISTEN_PID: meant, LISTEN_FDS: text = '', LISTEN_FDNAMES: names } = environment
  for (const name of ['LISTEN_PID', 'LISTEN_FDS', 'LISTEN_FDNAMES']) delete environment[name]
  if (meant !== String(pid)) return []
  const count = /^\d{1,3}$/.test(text) ? Number(text) : -1
  if (count < 0 || count > SOCKETS_MAX) {
    throw new UnavailableError(`Cannot take passed sockets: LISTEN_FDS is '${text}'`)
  }
  if (count === 0) return []
  const posix = loadPosix()
  const titles = names?.split(':') ?? []
  return Array.from({ length: count }, (_, i) => {
    return readSocket(posix, FIRST_DESCRIPTOR + i, titles[i] ?? 'unknown')
  })
}
