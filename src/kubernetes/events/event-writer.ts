// EventWriter sends one Event at a time. After a failure, and without the right, it rests for a while.

import type { Clock } from '../../core/clock.ts'
import type { RandomPool } from '../../core/random.ts'
import type { Log } from '../../telemetry/log.ts'
import { NO_ANSWER, type ApiAnswer, type ApiLoss, type ApiWriter } from '../connection/api-port.ts'
import { describeEnd, statusOfAnswer, type ApiStatus } from '../connection/api-status.ts'
import { Backoff, halfToWhole, SLOW_MS } from '../reflector/backoff.ts'
import { describeRule, groupPath } from '../reflector/collections.ts'
import { Work } from '../reflector/work.ts'
import { bodyOf, EVENTS, nameOf, namespaceOf, type PolicyEvent } from './policy-event.ts'
import { ANSWER_MS } from './writer-lease.ts'

export interface EventWriterOptions {
  readonly api: ApiWriter
  readonly clock: Clock
  readonly random: RandomPool
  /** The name of this node in the cluster. */
  readonly node: string
  readonly log: Log
}

/** `refused`: the server takes no such Event. `failed`: no answer, or a fault of the server. */
export type EventResult = 'written' | 'refused' | 'forbidden' | 'failed'

type Method = 'POST' | 'PATCH'

export class EventWriter {
  readonly counts: Record<EventResult, number> = { written: 0, refused: 0, forbidden: 0, failed: 0 }
  readonly #options: EventWriterOptions
  readonly #work: Work
  readonly #backoff: Backoff
  #isBusy = false
  #reason = ''
  #isForbidden = false

  constructor(options: EventWriterOptions) {
    this.#options = options
    this.#work = new Work(options.clock)
    this.#backoff = new Backoff(options.random)
  }

  /** True while an Event is on its way, and while the writer rests. */
  get isBusy(): boolean {
    return this.#isBusy
  }

  /** Why the last Event was not written. Empty after one that was. */
  get reason(): string {
    return this.#reason
  }

  get isForbidden(): boolean {
    return this.#isForbidden
  }

  /** Calls `done` when the server has taken or refused the Event. After another result there is no call, and the Event is still due. */
  write(event: PolicyEvent, done: () => void): void {
    this.#isBusy = true
    this.#send(event, event.count > 1 ? 'PATCH' : 'POST', false, done)
  }

  stop(): void {
    this.#work.end()
  }

  #send(event: PolicyEvent, method: Method, isSecond: boolean, done: () => void): void {
    const { api, clock, node } = this.#options
    const place = `${groupPath(EVENTS)}/namespaces/${encodeURIComponent(namespaceOf(event))}/events`
    const path = method === 'POST' ? place : `${place}/${nameOf(event)}`
    const onEnd = (end: ApiAnswer | ApiLoss): void => {
      const code = end.kind === 'answer' ? end.code : 0
      // Another writer has made the Event before, or the server has removed it since.
      const isOther = code === (method === 'POST' ? 409 : 404)
      if (!isOther || isSecond) return this.#settle(method, end, done)
      this.#send(event, method === 'POST' ? 'PATCH' : 'POST', true, done)
    }
    const request = api.change(method, path, bodyOf(event, node, clock.wall()), onEnd)
    this.#work.open(request, ANSWER_MS, () => onEnd(NO_ANSWER))
  }

  #settle(method: Method, end: ApiAnswer | ApiLoss, done: () => void): void {
    const { random, log } = this.#options
    const status = end.kind === 'answer' ? statusOfAnswer(end) : undefined
    const result = resultOf(status)
    this.counts[result]++
    this.#isForbidden = result === 'forbidden'
    if (result === 'forbidden') {
      const verb = method === 'POST' ? 'create' : 'patch'
      const rule = describeRule({ collection: EVENTS, namespace: undefined }, verb)
      return this.#rest(`a right is missing: add ${rule}`, halfToWhole(random, SLOW_MS))
    }
    if (result === 'failed') {
      return this.#rest(describeEnd(end), this.#backoff.next(status?.retryAfterMs))
    }
    if (result === 'refused') log.warn({ reason: describeEnd(end) }, 'an Event was refused')
    this.#backoff.reset()
    this.#rest('', 0)
    done()
  }

  #rest(reason: string, ms: number): void {
    this.#reason = reason
    this.#work.wait(ms, () => {
      this.#isBusy = false
    })
  }
}

function resultOf(status: ApiStatus | undefined): EventResult {
  if (status === undefined) return 'failed'
  const { code, message } = status
  if (code === 200 || code === 201) return 'written'
  // The server also answers 403 for a namespace that is being deleted, and above a quota.
  if (code === 403)
    return / cannot (?:create|patch) resource /.test(message) ? 'forbidden' : 'refused'
  return code >= 500 || code === 401 || code === 429 ? 'failed' : 'refused'
}
