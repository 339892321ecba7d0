// Starting a TCP listener, and why a listener of either kind can't start: one line with the remedy, after which
// the command ends with exit code 3.

import { createServer, type Server } from 'node:net'
import { UnavailableError } from '../../core/errors.ts'
import type { ListenerMode } from '../../config/config.ts'
import type { Family } from '../../core/ip.ts'
import { codeOf } from '../sockets/datagram-socket.ts'

/** Connections that the kernel may keep for us between two turns. */
const BACKLOG = 1024

/** A listening server whose connections may be half closed; throws UnavailableError when that's not possible. */
export async function listenTcp(family: Family, address: string, port: number): Promise<Server> {
  const server = createServer({ allowHalfOpen: true, noDelay: true })
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(listenFault('TCP', address, port, codeOf(error))))
    server.listen({ host: address, port, ipv6Only: family === 6, backlog: BACKLOG }, resolve)
  })
  server.removeAllListeners('error')
  return server
}

/** The port that a server listens on. */
export function portOf(server: Server): number {
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

/** An error for a bind or listen that failed with the system's `code`; `transport` is UDP or TCP. */
export function listenFault(
  transport: 'UDP' | 'TCP',
  address: string,
  port: number,
  code: string,
  mode: ListenerMode = 'explicit',
): UnavailableError {
  const where = address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`
  return new UnavailableError(
    `Cannot listen on ${where} (${transport}): ${reasonOf(code, port, mode)}`,
  )
}

function reasonOf(code: string, port: number, mode: ListenerMode): string {
  if (mode !== 'explicit' && (code === 'EPERM' || code === 'EACCES')) {
    return `no privilege for mode ${mode}: run as root or with CAP_NET_ADMIN and CAP_NET_RAW`
  }
  switch (code) {
    case 'EADDRINUSE':
      return `port ${port} is already in use: stop the program that has it, or set another listeners[].port`
    case 'EACCES':
    case 'EPERM':
      return `no privilege for port ${port}: run as root or with CAP_NET_BIND_SERVICE, or set a listeners[].port above 1023`
    case 'EADDRNOTAVAIL':
      return 'no interface has this address: set another listeners[].address'
    case 'EAFNOSUPPORT':
      return 'the kernel lacks this address family: set another listeners[].address'
    default:
      return code
  }
}
