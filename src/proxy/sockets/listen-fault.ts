// listenFault says in one line why a listener cannot start, and how to remedy it. The command then ends with exit code 3.

import { UnavailableError } from '../../core/errors.ts'
import type { ListenerMode } from '../../config/config.ts'

/** Returns the error for a bind or listen that failed with the system's error code `code`. */
export function listenFault(
  transport: 'UDP' | 'TCP',
  address: string,
  port: number,
  code: string,
  mode: ListenerMode,
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
