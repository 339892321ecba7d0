// Connection is the way to one API server over HTTP/2. It makes a session when a request needs one, and a new one after the old one ended or
// said goodbye. It does not repeat requests: the reflector decides when to ask again.

import type { Clock } from '../../core/clock.ts'
import type { ApiAccess } from './access.ts'
import type {
  ApiAnswer,
  ApiLoss,
  ApiRequest,
  ApiStreamEnd,
  ApiWriter,
  WatchHandlers,
} from './api-port.ts'
import { ApiSession } from './api-session.ts'
import { newConnectionCounts } from './connection-counts.ts'
import { Credentials } from './credentials.ts'
import { describeError, Exchange, type ApiBounds } from './exchange.ts'

export const API_BOUNDS: ApiBounds = { line: 8 * 2 ** 20, body: 64 * 2 ** 20 }

export interface ConnectionOptions {
  readonly access: ApiAccess
  readonly clock: Clock
  /** The header User-Agent, by which the audit log of the cluster knows namegate. */
  readonly agent: string
  readonly bounds?: ApiBounds
}

type End = ApiAnswer | ApiLoss | ApiStreamEnd

interface Sent {
  readonly method: 'GET' | 'POST' | 'PATCH'
  readonly path: string
  readonly body?: { readonly type: string; readonly text: string }
  readonly watch?: WatchHandlers
}

export class Connection implements ApiWriter {
  readonly counts = newConnectionCounts()
  readonly #options: ConnectionOptions
  readonly #credentials: Credentials
  /** The newest is last. Older ones still have open requests. */
  #sessions: readonly ApiSession[] = []
  #isClosed = false

  constructor(options: ConnectionOptions) {
    this.#options = options
    this.#credentials = new Credentials(options.access)
  }

  get(path: string, done: (end: ApiAnswer | ApiLoss) => void): ApiRequest {
    return this.#send({ method: 'GET', path }, answerTo(done))
  }

  watch(path: string, handlers: WatchHandlers): ApiRequest {
    return this.#send({ method: 'GET', path, watch: handlers }, (end) => handlers.onEnd(end))
  }

  change(
    method: 'POST' | 'PATCH',
    path: string,
    body: object,
    done: (end: ApiAnswer | ApiLoss) => void,
  ): ApiRequest {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
    const text = JSON.stringify(body)
    return this.#send({ method, path, body: { type, text } }, answerTo(done))
  }

  /** Ends everything. No request has an end afterwards. */
  close(): void {
    this.#isClosed = true
    for (const session of this.#sessions) session.destroy()
    this.#sessions = []
  }

  #send(sent: Sent, onEnd: (end: End) => void): ApiRequest {
    const { bounds = API_BOUNDS, clock } = this.#options
    const { body, watch } = sent
    const report = (end: End): void => {
      if (!this.#isClosed) onEnd(end)
    }
    try {
      const session = this.#session()
      const stream = session.request(this.#headers(sent), body?.text)
      return new Exchange({
        stream,
        bounds,
        counts: this.counts,
        heard: () => session.heard(),
        ...(watch === undefined ? {} : { watch }),
        onEnd: report,
      })
    } catch (error) {
      return later(clock, () => report({ kind: 'lost', reason: describeError(error) }))
    }
  }

  #headers({ method, path, body, watch }: Sent): Record<string, string> {
    const authorization = this.#credentials.authorization()
    return {
      ':method': method,
      ':path': this.#options.access.prefix + path,
      accept: 'application/json',
      'user-agent': this.#options.agent,
      // The server does not pack watches, and a packed stream would delay events.
      ...(watch === undefined ? { 'accept-encoding': 'gzip' } : {}),
      ...(body === undefined ? {} : { 'content-type': body.type }),
      ...(authorization === undefined ? {} : { authorization }),
    }
  }

  #session(): ApiSession {
    const newest = this.#sessions.at(-1)
    if (newest?.isUsable === true) return newest
    const { access, clock } = this.#options
    const session = new ApiSession(access.origin, this.#credentials.tls(), clock, this.counts)
    this.#sessions = [...this.#sessions.filter((each) => !each.isOver), session]
    return session
  }
}

/** Every answer but that of a watch has a body. */
function answerTo(done: (end: ApiAnswer | ApiLoss) => void): (end: End) => void {
  return (end) => {
    done(end.kind === 'ended' ? { kind: 'lost', reason: 'the answer has no body' } : end)
  }
}

/** Calls `run` in the next turn, unless it is cancelled. */
function later(clock: Clock, run: () => void): ApiRequest {
  let isCancelled = false
  clock.soon(() => {
    if (!isCancelled) run()
  })
  return {
    cancel() {
      isCancelled = true
    },
  }
}
