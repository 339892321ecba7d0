// A Client connects commands with the daemon, by HTTP over the daemon's UNIX socket. If no daemon runs, or the daemon is silent
// (silence.ts), its functions throw an UnavailableError that names the remedy.

import { request, type IncomingMessage } from 'node:http'
import { messageOf, UnavailableError, UsageError } from '../core/errors.ts'
import type { ParsedArguments } from './command.ts'
import { DEFAULT_SOCKET, findConfigFile, givenSocket, type SocketPlace } from './config-file.ts'
import { SilenceWatch, SilentDaemonError } from './silence.ts'

export interface RequestOptions {
  /** A value that is sent as JSON. If undefined, the request has no body. */
  readonly body?: object | undefined
  /** If absent: POST for a request with a body, else GET. */
  readonly method?: 'PUT' | 'DELETE'
  /** The longest time until the first octet of the answer, in milliseconds. If undefined, there is no limit while the daemon works. */
  readonly timeoutMs?: number
}

/** Sends requests to one daemon. Every request has a connection of its own. */
export class Client {
  readonly socket: string
  readonly #place: SocketPlace

  constructor(place: SocketPlace) {
    this.socket = place.path
    this.#place = place
  }

  /** Sends a request and returns the body of the reply piece by piece. Throws UsageError or UnavailableError if the daemon refuses. */
  async open(path: string, options: RequestOptions = {}): Promise<AsyncIterable<string>> {
    const { status, body } = await this.#send(path, options)
    if (status === 200) return body
    throw refusal(status, await gather(body))
  }

  /** Sends a request and returns the whole reply, parsed as JSON. Throws the same errors as `open`. */
  async get(path: string, options: RequestOptions = {}): Promise<unknown> {
    const body: unknown = JSON.parse(await gather(await this.open(path, options)))
    return body
  }

  /**
   * With `given`, sets the object at `path` (PUT). Without it, removes the object (DELETE), and returns undefined if there was nothing to
   * remove. Otherwise returns the reply, parsed as JSON. Throws the same errors as `open`.
   */
  async change(path: string, given: object | undefined): Promise<unknown> {
    const method = given === undefined ? 'DELETE' : 'PUT'
    const { status, body } = await this.#send(path, { body: given, method })
    const text = await gather(body)
    if (status === 404 && given === undefined) return undefined
    if (status !== 200) throw refusal(status, text)
    const answer: unknown = JSON.parse(text)
    return answer
  }

  async #send(path: string, { body, method, timeoutMs }: RequestOptions): Promise<Reply> {
    const place = this.#place
    const socket = place.path
    return await new Promise((resolve, reject) => {
      const sent = request({
        socketPath: socket,
        path,
        agent: false,
        method: method ?? (body === undefined ? 'GET' : 'POST'),
        ...(timeoutMs === undefined ? {} : { timeout: timeoutMs }),
      })
      let answer: IncomingMessage | undefined
      const watch = new SilenceWatch(socket, (error) => (answer ?? sent).destroy(error))
      sent.once('response', (response) => {
        // The time limit is only for the first octet, because a stream of flows can be silent for a long time.
        sent.removeAllListeners('timeout')
        watch.heard()
        answer = response
        resolve({ status: response.statusCode ?? 0, body: texts(response, socket, watch) })
      })
      sent.once('timeout', () => sent.destroy(new SilentDaemonError(socket, timeoutMs ?? 0)))
      sent.once('error', (error: NodeJS.ErrnoException) => {
        watch.stop()
        reject(cannotReach(place, error))
      })
      sent.end(body === undefined ? undefined : JSON.stringify(body))
    })
  }
}

interface Reply {
  readonly status: number
  readonly body: AsyncIterable<string>
}

/** Finds the daemon's socket by option, environment or configuration. Throws InvalidInputError if the configuration has faults. */
export async function openClient({ texts: options }: ParsedArguments): Promise<Client> {
  const given = givenSocket(options.get('socket'))
  if (given !== undefined) return new Client(given)
  const file = findConfigFile(options.get('config'))
  if (file === undefined)
    return new Client({ path: DEFAULT_SOCKET, named: 'where no configuration is found' })
  const { loadConfig } = await import('../config/load.ts')
  return new Client({ path: loadConfig(file).admin.socket, named: `of ${file}` })
}

async function* texts(
  response: IncomingMessage,
  socket: string,
  watch: SilenceWatch,
): AsyncIterable<string> {
  response.setEncoding('utf8')
  try {
    for await (const chunk of response) {
      watch.heard()
      if (typeof chunk === 'string') yield chunk
    }
  } catch (error) {
    if (error instanceof SilentDaemonError) throw error
    const reason = messageOf(error)
    throw new UnavailableError(
      `The daemon at ${socket} ended in the middle of its answer: ${reason}`,
    )
  } finally {
    watch.stop()
  }
}

async function gather(parts: AsyncIterable<string>): Promise<string> {
  let all = ''
  for await (const part of parts) all += part
  return all
}

/** Returns the error for a refusal of the daemon: UsageError for wrong input of the user, else UnavailableError. */
function refusal(status: number, body: string): Error {
  const reason = reasonIn(body) ?? `the daemon answered with status ${status}`
  return status === 400 || status === 404 ? new UsageError(reason) : new UnavailableError(reason)
}

function reasonIn(body: string): string | undefined {
  try {
    const parsed: unknown = JSON.parse(body)
    if (typeof parsed === 'object' && parsed !== null && 'detail' in parsed)
      return String(parsed.detail)
  } catch {
    // The body comes from another kind of server, or is not complete. The status is enough.
  }
  return undefined
}

function cannotReach({ path, named }: SocketPlace, error: NodeJS.ErrnoException): UnavailableError {
  if (error instanceof SilentDaemonError) return error
  const { code, message } = error
  const whose = ` (the socket ${named})`
  return new UnavailableError(
    code === 'ENOENT'
      ? `No daemon at ${path}: there is no such socket: start one with 'namegate run', or give --socket or --config${whose}`
      : code === 'ECONNREFUSED'
        ? `No daemon at ${path}: the daemon of this socket has ended: start one with 'namegate run'${whose}`
        : code === 'EACCES' || code === 'EPERM'
          ? `Cannot reach the daemon at ${path}: permission denied: run as the daemon's user or root${whose}`
          : `Cannot reach the daemon at ${path}: ${message}${whose}`,
  )
}
