// One request on an HTTP/2 stream: reads the status, and then one body or the lines of a watch. It ends exactly once, or is cancelled.

import { constants, type ClientHttp2Stream, type IncomingHttpHeaders } from 'node:http2'
import type { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { messageOf } from '../../core/errors.ts'
import type { ApiAnswer, ApiLoss, ApiRequest, ApiStreamEnd } from './api-port.ts'
import type { ConnectionCounts } from './connection-counts.ts'
import { LineSplitter } from './line-splitter.ts'

/** Bounds of answers, in octets after decompression. */
export interface ApiBounds {
  /** One event of a watch. An object has at most 1.5 MiB in etcd, and is larger as JSON. */
  readonly line: number
  /** One page of a list, or another body. */
  readonly body: number
}

export interface ExchangeParts {
  readonly stream: ClientHttp2Stream
  readonly bounds: ApiBounds
  readonly counts: ConnectionCounts
  /** Called when anything comes. */
  readonly heard: () => void
  /** Of a watch. Absent: the answer has one body. */
  readonly watch?: { onOpen(): void; onEvent(event: unknown): void }
  readonly onEnd: (end: ApiAnswer | ApiLoss | ApiStreamEnd) => void
}

export class Exchange implements ApiRequest {
  readonly #parts: ExchangeParts
  #code = 0
  #retryAfterMs: number | undefined
  #isOver = false
  #hasEnded = false
  #error: Error | undefined
  /** The body so far; unused in a watch. */
  #body: Buffer[] = []
  #length = 0
  readonly #lines: LineSplitter

  constructor(parts: ExchangeParts) {
    this.#parts = parts
    this.#lines = new LineSplitter(parts.bounds.line, (line) => {
      if (!this.#isOver) parts.watch?.onEvent(parseJson(line))
    })
    const { stream } = parts
    stream.on('response', (headers) => this.#response(headers))
    stream.on('error', (error) => {
      this.#error ??= error
    })
    stream.on('close', () => this.#closed())
  }

  cancel(): void {
    this.#isOver = true
    this.#body = []
    if (!this.#parts.stream.closed) this.#parts.stream.close(constants.NGHTTP2_CANCEL)
  }

  get #isWatch(): boolean {
    return this.#parts.watch !== undefined && this.#code === 200
  }

  #response(headers: IncomingHttpHeaders): void {
    if (this.#isOver) return
    const { stream, heard, watch } = this.#parts
    this.#code = Number(headers[':status'] ?? 0)
    this.#retryAfterMs = retryAfterOf(headers['retry-after'])
    heard()
    stream.on('data', (octets: Buffer) => {
      this.#parts.counts.octets += octets.length
      heard()
    })
    const isPacked = headers['content-encoding'] === 'gzip'
    this.#read(isPacked ? stream.pipe(createGunzip()) : stream)
    if (this.#isWatch) watch?.onOpen()
  }

  #read(body: Readable): void {
    body.on('data', (octets: Buffer) => this.#data(octets))
    body.on('end', () => {
      this.#hasEnded = true
      // Without compression, `close` comes next. It tells if the stream has ended in an orderly way.
      if (body !== this.#parts.stream && this.#parts.stream.closed) this.#closed()
    })
    if (body === this.#parts.stream) return
    body.on('error', (error) => {
      this.#error ??= error
      this.#end({ kind: 'lost', reason: describeError(error) })
    })
    this.#parts.stream.on('close', () => {
      if (!this.#parts.stream.readableEnded) body.destroy(new Error('the answer is incomplete'))
    })
  }

  #data(octets: Buffer): void {
    if (this.#isOver) return
    const { counts, bounds } = this.#parts
    if (this.#isWatch) {
      if (this.#lines.take(octets) || this.#isOver) return
      counts.longLines++
      return this.#tooLong(`an event of the watch has more than ${bounds.line} octets`)
    }
    this.#length += octets.length
    this.#body.push(octets)
    if (this.#length <= bounds.body) return
    counts.longBodies++
    this.#tooLong(`an answer has more than ${bounds.body} octets`)
  }

  #tooLong(reason: string): void {
    this.#end({ kind: 'too-long', reason })
    this.cancel()
  }

  /** The stream has closed. A packed body can still be on its way through the decompression. */
  #closed(): void {
    const { stream } = this.#parts
    const isWhole = stream.rstCode === constants.NGHTTP2_NO_ERROR && this.#error === undefined
    if (this.#code === 0 || !isWhole || stream.aborted) {
      return this.#end({ kind: 'lost', reason: this.#describeLoss() })
    }
    if (!this.#hasEnded) return
    if (!this.#isWatch) return this.#end(this.#answer())
    // The end of the last event is missing if the server died while it wrote.
    const isTorn = this.#lines.isInsideLine
    this.#end(isTorn ? { kind: 'lost', reason: 'the last event is incomplete' } : { kind: 'ended' })
  }

  #answer(): ApiAnswer {
    const body = parseJson(Buffer.concat(this.#body).toString('utf8'))
    return { kind: 'answer', code: this.#code, body, retryAfterMs: this.#retryAfterMs }
  }

  #describeLoss(): string {
    if (this.#error !== undefined) return describeError(this.#error)
    return `the API server closed the request with HTTP/2 code ${this.#parts.stream.rstCode}`
  }

  #end(end: ApiAnswer | ApiLoss | ApiStreamEnd): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#body = []
    this.#parts.onEnd(end)
  }
}

/** Describes an error with its cause, because Node.js hides the reason of a failed connection in the cause. */
export function describeError(error: unknown): string {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : undefined
  const text = cause === undefined ? messageOf(error) : messageOf(cause)
  return `no answer from the API server: ${text}`
}

/** Reads Retry-After, a number of seconds, as the API server sends it. */
function retryAfterOf(value: string | undefined): number | undefined {
  return value !== undefined && /^[0-9]{1,9}$/.test(value) ? Number(value) * 1000 : undefined
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
