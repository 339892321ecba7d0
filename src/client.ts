// What `import { connect } from 'namegate/client'` has: a typed client of the admin API of a running daemon (docs/library.md).

import { Client } from './client/client.ts'
import { DEFAULT_SOCKET } from './client/default-socket.ts'

export { UnavailableError } from './core/errors.ts'
export { ConnectionError, type ConnectionFailure } from './client/connection-error.ts'
export { ProblemError } from './client/problem-error.ts'
export type { Client, Reply, RequestOptions } from './client/client.ts'
export type * from './client/api-types.ts'

/**
 * Returns a client of the daemon with this admin socket. Without `socket` it is the socket that $NAMEGATE_SOCKET names, else
 * /run/namegate/admin.sock. The first request connects.
 */
export function connect(socket?: string): Client {
  const named = process.env['NAMEGATE_SOCKET'] ?? ''
  return new Client({ path: socket ?? (named === '' ? DEFAULT_SOCKET : named) })
}
