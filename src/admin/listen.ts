// Opens the sockets of the admin API and the metrics. The socket file has mode 0600 from the moment it is made. A socket file on which no
// process answers is replaced. A socket file on which a process answers is never replaced.

import { lstatSync, rmSync } from 'node:fs'
import type { Server } from 'node:http'
import { connect } from 'node:net'
import { dirname } from 'node:path'
import { messageOf, UnavailableError } from '../core/errors.ts'
import { SOCKET_PATH_MAX } from '../core/socket-address.ts'
import { makeFolder } from '../native/make-folder.ts'

const NOT_OTHERS = 0o177

export async function listenOnSocket(server: Server, path: string): Promise<void> {
  if (Buffer.byteLength(path) > SOCKET_PATH_MAX) {
    throw new UnavailableError(
      `Cannot listen on ${path}: longer than ${SOCKET_PATH_MAX} octets: give a shorter admin.socket`,
    )
  }
  try {
    makeFolder(dirname(path), 0o755)
  } catch (error) {
    throw cannotListen(path, error, 'give another admin.socket, or the right to write there')
  }
  await removeStale(path)
  const before = process.umask(NOT_OTHERS)
  try {
    // `listen` makes the file before it returns, and the event `listening` follows later. So the umask is changed only until `listen`
    // returns.
    const listening = listen(server, () => server.listen(path))
    process.umask(before)
    await listening
  } catch (error) {
    throw cannotListen(path, error, 'give another admin.socket, or the right to write there')
  } finally {
    process.umask(before)
  }
}

/** Listens, and returns the port. Port 0 takes a free port. `keys` names the configuration keys of address and port. */
export async function listenOnPort(
  server: Server,
  address: string,
  port: number,
  keys = 'metrics.address or metrics.port',
): Promise<number> {
  try {
    await listen(server, () => server.listen({ host: address, port }))
  } catch (error) {
    throw cannotListen(`${address} port ${port}`, error, `give another ${keys}`)
  }
  const bound = server.address()
  return typeof bound === 'object' && bound !== null ? bound.port : port
}

async function listen(server: Server, begin: () => void): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.once('listening', () => {
      server.off('error', reject)
      resolve()
    })
    begin()
  })
}

async function removeStale(path: string): Promise<void> {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found === undefined) return
  if (!found.isSocket()) {
    throw new UnavailableError(
      `Cannot listen on ${path}: it is no socket: give another admin.socket`,
    )
  }
  if (await isAnswered(path)) {
    throw new UnavailableError(
      `Cannot listen on ${path}: another daemon answers there: stop it or give another admin.socket`,
    )
  }
  rmSync(path, { force: true })
}

async function isAnswered(path: string): Promise<boolean> {
  return await new Promise((resolve) => {
    const probe = connect(path)
    probe.once('connect', () => {
      probe.destroy()
      resolve(true)
    })
    // If the connection is refused, no process listens. After any other error (no permission, full) a process may listen.
    probe.once('error', (error: NodeJS.ErrnoException) => {
      resolve(error.code !== 'ECONNREFUSED' && error.code !== 'ENOENT')
    })
  })
}

function cannotListen(where: string, error: unknown, remedy: string): UnavailableError {
  const reason = messageOf(error)
  return new UnavailableError(`Cannot listen on ${where}: ${reason}: ${remedy}`)
}
