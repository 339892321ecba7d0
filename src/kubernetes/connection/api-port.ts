// ApiPort is what namegate needs of a connection to the API server: one answer, or a stream of events. The calls of one request come in
// order. They come after the request function has returned, and none comes after `cancel`.

/** The server answered a request with one body. */
export interface ApiAnswer {
  readonly kind: 'answer'
  /** The HTTP status. */
  readonly code: number
  /** The parsed body, which is often a Status. Undefined if the body is not JSON. */
  readonly body: unknown
  /** The time of the header Retry-After, in milliseconds. */
  readonly retryAfterMs: number | undefined
}

/** The request has no whole answer. `too-long`: a line or a body reached its bound. */
export interface ApiLoss {
  readonly kind: 'lost' | 'too-long'
  readonly reason: string
}

/** A request was given up. */
export const NO_ANSWER: ApiLoss = { kind: 'lost', reason: 'the API server does not answer' }

/** The server ended an open stream in an orderly way. */
export interface ApiStreamEnd {
  readonly kind: 'ended'
}

export interface WatchHandlers {
  /** The server accepted the watch (status 200). */
  onOpen(): void
  /** One line of the stream, parsed. Undefined if the line is not JSON. */
  onEvent(event: unknown): void
  /** The last call. An answer means that the server refused the watch. */
  onEnd(end: ApiAnswer | ApiLoss | ApiStreamEnd): void
}

export interface ApiRequest {
  cancel(): void
}

export interface ApiPort {
  /** `path` has the query string. `done` is called once. */
  get(path: string, done: (end: ApiAnswer | ApiLoss) => void): ApiRequest
  watch(path: string, handlers: WatchHandlers): ApiRequest
}

/** A port that can also change objects. */
export interface ApiWriter extends ApiPort {
  /** Creates an object (POST), or changes some fields of one (PATCH, RFC 7396). `done` is called once. */
  change(
    method: 'POST' | 'PATCH',
    path: string,
    body: object,
    done: (end: ApiAnswer | ApiLoss) => void,
  ): ApiRequest
}
