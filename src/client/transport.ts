// Sends one HTTP request over the UNIX socket of a daemon. If no daemon runs, or the daemon is silent (silence.ts), the functions throw a
// ConnectionError that names the remedy.

import { request, type IncomingMessage } from 'node:http'
import { messageOf } from '../core/errors.ts'
import { ConnectionError, type ConnectionFailure } from './connection-error.ts'
import { SilenceWatch, SilentDaemonError } from './silence.ts'

/** The socket of a daemon, and words for error messages. */
export interface SocketPlace {
  readonly path: string
  /** Who named the path, such as `of config/namegate.yaml`. */
  readonly named?: string | undefined
  /** What the user can do besides starting a daemon, such as `give --socket`. */
  readonly remedy?: string | undefined
}

/** AbortSignal, in a program that has its type. */
export type Signal = typeof globalThis extends {
  readonly AbortSignal: { readonly prototype: infer Found }
}
  ? Found
  : never

export interface Request {
  readonly method: string
  /** Path and query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** JSON. */
  readonly body: string | undefined
  /** The longest time until the first octet of the answer, in milliseconds. If undefined, there is no limit while the daemon works. */
  readonly timeoutMs: number | undefined
  readonly signal: Signal | undefined
}

export interface Response {
  readonly status: number
  readonly etag: string | undefined
  /** A reader that stops early ends the request. */
  readonly body: AsyncIterable<string>
}

/** Every request has a connection of its own. */
export async function send(place: SocketPlace, given: Request): Promise<Response> {
  const socket = place.path
  const { method, path, headers, body, timeoutMs, signal } = given
  return await new Promise((resolve, reject) => {
    const sent = request({
      ...{ socketPath: socket, path, agent: false, method, headers },
      ...(timeoutMs === undefined ? {} : { timeout: timeoutMs }),
      ...(signal === undefined ? {} : { signal }),
    })
    let answer: IncomingMessage | undefined
    const watch = new SilenceWatch(socket, (error) => (answer ?? sent).destroy(error))
    sent.once('response', (response) => {
      // The time limit is only for the first octet, because a stream of flows can be silent for a long time.
      sent.removeAllListeners('timeout')
      watch.heard()
      answer = response
      const { statusCode: status = 0, headers: received } = response
      resolve({ status, etag: received.etag, body: texts(response, socket, watch, signal) })
    })
    sent.once('timeout', () => sent.destroy(new SilentDaemonError(socket, timeoutMs ?? 0)))
    sent.once('error', (error: NodeJS.ErrnoException) => {
      watch.stop()
      reject(signal?.aborted === true ? error : cannotReach(place, error))
    })
    sent.end(body)
  })
}

async function* texts(
  response: IncomingMessage,
  socket: string,
  watch: SilenceWatch,
  signal: Signal | undefined,
): AsyncGenerator<string> {
  response.setEncoding('utf8')
  try {
    for await (const chunk of response) {
      watch.heard()
      if (typeof chunk === 'string') yield chunk
    }
  } catch (error) {
    if (error instanceof SilentDaemonError || signal?.aborted === true) throw error
    const reason = messageOf(error)
    const text = `The daemon at ${socket} ended in the middle of its answer: ${reason}`
    throw new ConnectionError('broken', text)
  } finally {
    watch.stop()
  }
}

/** The socket of a daemon that `namegate up` started. */
const UP_SOCKET = /\/up-[^/]+\/admin\.sock$/

/** How a daemon with this socket starts. */
function startOf(path: string): string {
  return UP_SOCKET.test(path)
    ? "give the same 'namegate up' again"
    : "start one with 'namegate run'"
}

function cannotReach(
  { path, named, remedy }: SocketPlace,
  error: NodeJS.ErrnoException,
): ConnectionError {
  if (error instanceof ConnectionError) return error
  const whose = named === undefined ? '' : ` (the socket ${named})`
  const also = remedy === undefined ? '' : `, or ${remedy}`
  const fail = (failure: ConnectionFailure, text: string): ConnectionError =>
    new ConnectionError(failure, text)
  switch (error.code) {
    case 'ENOENT':
      return fail(
        'absent',
        `No daemon at ${path}${whose}: there is no such socket; ${startOf(path)}${also}`,
      )
    case 'ECONNREFUSED':
      return fail(
        'absent',
        `No daemon at ${path}${whose}: no process listens there, because its daemon has ended or another file took its place; ${startOf(path)}${also}`,
      )
    case 'EACCES':
    case 'EPERM':
      return fail(
        'denied',
        `Cannot reach the daemon at ${path}${whose}: permission denied; run as the daemon's user or root`,
      )
    case undefined:
    default:
      return fail('broken', `Cannot reach the daemon at ${path}${whose}: ${error.message}`)
  }
}
