// The ApiPort over an ApiModel, on fake time and without sockets. Faults can be put in the way of the next requests.

import type {
  ApiAnswer,
  ApiLoss,
  ApiRequest,
  ApiWriter,
  WatchHandlers,
} from '../../../src/kubernetes/connection/api-port.ts'
import type { FakeClock } from '../fake-clock.ts'
import type { ApiModel } from './api-model.ts'
import { ApiRequests } from './api-requests.ts'
import { change, type Written } from './api-writes.ts'

/** What happens to a request instead of an answer of the model. */
export type Fault =
  | {
      readonly kind: 'answer'
      readonly code: number
      readonly body?: unknown
      readonly retryAfterMs?: number
    }
  | { readonly kind: 'lost' | 'too-long' | 'silence' }
  /** An answer of 200 with these lines, which ends in an orderly way unless it stays open. */
  | { readonly kind: 'lines'; readonly lines: readonly unknown[]; readonly isOpen?: boolean }

const LATENCY_MS = 1

export class MemoryApi implements ApiWriter {
  /** The path of each request, with its time in milliseconds since the start. */
  readonly log: { readonly at: number; readonly path: string }[] = []
  /** The faults of the next requests whose path contains the text. */
  readonly faults: { readonly path: string; readonly fault: Fault }[] = []
  isAway = false
  readonly #clock: FakeClock
  readonly #requests: ApiRequests
  readonly #model: ApiModel
  readonly #open = new Set<(reason: string) => void>()
  readonly #startedAt: number

  constructor(model: ApiModel, clock: FakeClock) {
    this.#model = model
    this.#clock = clock
    this.#requests = new ApiRequests(model)
    this.#startedAt = clock.now()
  }

  /** Open requests. */
  get openCount(): number {
    return this.#open.size
  }

  get(path: string, done: (end: ApiAnswer | ApiLoss) => void): ApiRequest {
    return this.#once(
      path,
      () => {
        const reply = this.#requests.answer(path)
        if (reply.kind === 'stream') throw new Error(`a watch by get: ${path}`)
        return reply
      },
      done,
    )
  }

  /** The log and the faults have the method before the path. */
  change(
    method: 'POST' | 'PATCH',
    path: string,
    body: object,
    done: (end: ApiAnswer | ApiLoss) => void,
  ): ApiRequest {
    const sent = copy(body)
    return this.#once(`${method} ${path}`, () => change(this.#model, method, path, sent), done)
  }

  #once(what: string, answer: () => Written, done: (end: ApiAnswer | ApiLoss) => void): ApiRequest {
    return this.#later(
      what,
      (fault, guard) => {
        if (fault?.kind === 'silence') return
        guard.over()
        if (fault?.kind === 'lost' || fault?.kind === 'too-long')
          return done({ kind: fault.kind, reason: 'the connection was lost' })
        if (fault?.kind === 'answer')
          return done({
            kind: 'answer',
            code: fault.code,
            body: fault.body,
            retryAfterMs: fault.retryAfterMs,
          })
        const { code, body } = answer()
        done({ kind: 'answer', code, body: copy(body), retryAfterMs: undefined })
      },
      done,
    )
  }

  watch(path: string, handlers: WatchHandlers): ApiRequest {
    return this.#later(
      path,
      (fault, guard) => {
        if (fault?.kind === 'silence') return
        const end: WatchHandlers['onEnd'] = (how) => {
          if (guard.isOver()) return
          guard.over()
          handlers.onEnd(how)
        }
        if (fault?.kind === 'lost' || fault?.kind === 'too-long')
          return end({ kind: fault.kind, reason: 'the connection was lost' })
        if (fault?.kind === 'answer')
          return end({
            kind: 'answer',
            code: fault.code,
            body: fault.body,
            retryAfterMs: fault.retryAfterMs,
          })
        const send = (event: unknown): void => {
          this.#clock.soon(() => {
            if (!guard.isOver()) handlers.onEvent(copy(event))
          })
        }
        const close = (): void => this.#clock.soon(() => end({ kind: 'ended' }))
        if (fault?.kind === 'lines') {
          handlers.onOpen()
          fault.lines.forEach(send)
          if (fault.isOpen !== true) close()
          return
        }
        const reply = this.#requests.answer(path)
        if (reply.kind === 'body')
          return end({
            kind: 'answer',
            code: reply.code,
            body: copy(reply.body),
            retryAfterMs: undefined,
          })
        handlers.onOpen()
        if (guard.isOver()) return
        const stop = reply.begin(send, close)
        const timer = this.#clock.after(reply.seconds * 1000, () => end({ kind: 'ended' }))
        guard.onOver(() => {
          stop()
          timer.cancel()
        })
      },
      handlers.onEnd.bind(handlers),
    )
  }

  /** All connections break. Without `away`, the next request is answered. */
  drop(): void {
    for (const lose of this.#open) lose('the connection was lost')
  }

  #later(
    path: string,
    run: (fault: Fault | undefined, guard: Guard) => void,
    lose: (end: ApiLoss) => void,
  ): ApiRequest {
    this.log.push({ at: this.#clock.now() - this.#startedAt, path })
    const place = this.faults.findIndex((each) => path.includes(each.path))
    const [found] = place < 0 ? [] : this.faults.splice(place, 1)
    const fault = this.isAway ? ({ kind: 'lost' } as const) : found?.fault
    let isOver = false
    let onOver: () => unknown = () => undefined
    const drop = (reason: string): void => {
      if (isOver) return
      guard.over()
      lose({ kind: 'lost', reason })
    }
    const guard: Guard = {
      isOver: () => isOver,
      over: () => {
        isOver = true
        this.#open.delete(drop)
        onOver()
      },
      onOver: (call) => {
        onOver = call
      },
    }
    this.#open.add(drop)
    this.#clock.after(LATENCY_MS, () => {
      if (!isOver) run(fault, guard)
    })
    return { cancel: () => guard.over() }
  }

  get model(): ApiModel {
    return this.#model
  }
}

interface Guard {
  isOver(): boolean
  over(): void
  onOver(call: () => unknown): void
}

/** As through a socket: later changes of the model do not reach what was sent. */
function copy(value: unknown): unknown {
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value))
}
