// Sockets that systemd bound before the start and that outlive the daemon (sd_listen_fds(3)): what comes while no daemon runs waits
// in them. This file takes and reads them; proxy/server/passed-sockets.ts finds the listener of each.

import { UnavailableError } from '../core/errors.ts'
import { isBuilt, loadPosix } from '../native/native.ts'
import { readSocket, type PassedSocket } from '../native/passed-socket.ts'

const FIRST_DESCRIPTOR = 3
const SOCKETS_MAX = 256

type Environment = Record<string, string | undefined>

/** Takes what was passed to this process and clears the environment; throws UnavailableError when it is of no use here. */
export function takePassedSockets(environment: Environment, pid: number): readonly PassedSocket[] {
  const { LISTEN_PID: meant, LISTEN_FDS: text = '', LISTEN_FDNAMES: names } = environment
  for (const name of ['LISTEN_PID', 'LISTEN_FDS', 'LISTEN_FDNAMES']) delete environment[name]
  if (meant !== String(pid)) return []
  const count = /^\d{1,3}$/.test(text) ? Number(text) : -1
  if (count < 0 || count > SOCKETS_MAX) {
    throw new UnavailableError(`Cannot take passed sockets: LISTEN_FDS is '${text}'`)
  }
  if (count === 0) return []
  if (!isBuilt('posix')) {
    throw new UnavailableError(
      'Cannot take passed sockets: the native part is not built: apt-get install gcc libc6-dev, then npm run build',
    )
  }
  const posix = loadPosix()
  const titles = names?.split(':') ?? []
  return Array.from({ length: count }, (_, i) => {
    return readSocket(posix, FIRST_DESCRIPTOR + i, titles[i] ?? 'unknown')
  })
}
