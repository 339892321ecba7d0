// What bounds the clients' TCP connections, and what is counted of them.

import type { TcpConnection } from './tcp-connection.ts'

export interface TcpServerLimits {
  /** `limits.tcp-connections` and `limits.tcp-connections-per-client`. */
  readonly connections: number
  readonly connectionsPerClient: number
  /** `limits.queries-per-tcp-connection`. */
  readonly queriesPerConnection: number
  /** `limits.tcp-idle-timeout` and `limits.tcp-message-timeout`, in milliseconds. */
  readonly idleTimeout: number
  readonly messageTimeout: number
}

export const DEFAULT_TCP_LIMITS: TcpServerLimits = {
  connections: 4096,
  connectionsPerClient: 64,
  queriesPerConnection: 256,
  idleTimeout: 10_000,
  messageTimeout: 5_000,
}

/** What one server counts since its start. */
export class TcpCounters {
  accepted = 0
  /** Open now. */
  open = 0
  received = 0
  sent = 0
  /** Refused because all connections were busy, in all or of that client. */
  refusedFull = 0
  refusedClientFull = 0
  /** Idle ones closed to make room. */
  evicted = 0
  closedIdle = 0
  /** A message was begun and not completed in time. */
  closedIncomplete = 0
  /** The client didn't take its answers. */
  closedSlowReader = 0
  /** Times that reading stopped at the bound of unanswered queries. */
  readsPaused = 0
  /** Answers whose connection was gone. */
  answersDropped = 0
  /** Errors of connections (resets) and of accepting. */
  socketErrors = 0
}

/** Which bound of time a connection has passed, as the counter of it. */
export function whyClose(
  connection: Pick<TcpConnection, 'stalledFor' | 'partialSince' | 'idle' | 'lastMessageAt'>,
  now: number,
  { idleTimeout, messageTimeout }: TcpServerLimits,
): 'closedSlowReader' | 'closedIncomplete' | 'closedIdle' | undefined {
  const { partialSince, lastMessageAt, idle } = connection
  if (connection.stalledFor(now) > messageTimeout) return 'closedSlowReader'
  if (partialSince >= 0 && now - partialSince > messageTimeout) return 'closedIncomplete'
  return idle && now - lastMessageAt > idleTimeout ? 'closedIdle' : undefined
}
