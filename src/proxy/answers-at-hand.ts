// Queries that the daemon before us forwarded, taken on with what became of them. They are admitted like all others, by
// the policy that holds now; where others are forwarded, these have their answer at hand, and it is settled like every
// other answer: learned, in force, released. Stands between the pipeline and the upstream, which it otherwise is.

import type { EndpointId, Generation } from '../core/ids.ts'
import type { QueryView } from '../dns/query.ts'
import {
  AnswerBatch,
  FAILED_SOCKET,
  FAILED_TIMEOUT,
  FailureBatch,
} from './messages/answer-batch.ts'
import { MessageBatch } from './messages/batch.ts'
import { copyOctets } from './messages/octet-store.ts'
import type { HandedQuery } from './handed.ts'
import { CLIENT_FULL, TABLE_FULL } from './messages/in-flight.ts'
import type { Pipeline } from './pipeline/pipeline.ts'
import type { ForwardResult, Upstream } from './upstream/upstream.ts'

const STRIDE = 4096

export class AnswersAtHand {
  readonly counters = { taken: 0 }
  readonly #upstream: Upstream
  readonly #batch = new MessageBatch({ capacity: 1, stride: STRIDE })
  readonly #answers = new AnswerBatch(1)
  readonly #failures = new FailureBatch(1)
  /** Slots that the upstream knows nothing of. */
  readonly #slots = new Set<number>()
  #handed: HandedQuery | undefined

  constructor(upstream: Upstream) {
    this.#upstream = upstream
  }

  get inFlight(): Upstream['inFlight'] {
    return this.#upstream.inFlight
  }

  /** Takes on one query; its client and channel are ours. */
  take(handed: HandedQuery, pipeline: Pick<Pipeline, 'admit' | 'settle' | 'fail'>): void {
    const batch = this.#batch
    this.counters.taken++
    batch.addTcp(
      handed.channel,
      handed.family,
      handed.address,
      handed.port,
      handed.query,
      0,
      handed.query.length,
    )
    batch.transports[0] = handed.transport
    batch.interfaces[0] = handed.interfaceIndex
    batch.askedPorts[0] = handed.askedPort
    copyOctets(handed.asked, 0, batch.askedAddresses, 0, 16)
    this.#handed = handed.fate === 'asked' ? undefined : handed
    try {
      pipeline.admit(batch)
      if (this.#answers.count > 0) pipeline.settle(this.#answers)
      if (this.#failures.count > 0) pipeline.fail(this.#failures)
    } finally {
      this.#handed = undefined
      this.#answers.clear()
      this.#failures.clear()
      batch.clear()
    }
  }

  forward(
    batch: MessageBatch,
    index: number,
    query: QueryView,
    endpoint: EndpointId,
    generation: Generation,
  ): ForwardResult {
    const handed = this.#handed
    if (handed === undefined) {
      return this.#upstream.forward(batch, index, query, endpoint, generation)
    }
    const slot = this.inFlight.take(batch, index, query, endpoint, generation)
    if (slot === TABLE_FULL) return 'full'
    if (slot === CLIENT_FULL) return 'client-full'
    this.#slots.add(slot)
    const { answer, fate, overTcp } = handed
    if (fate === 'answered') this.#answers.add(slot, 0, overTcp, answer, 0, answer.length)
    else this.#failures.add(slot, fate === 'timeout' ? FAILED_TIMEOUT : FAILED_SOCKET)
    return 'forwarded'
  }

  release(slot: number): void {
    if (this.#slots.delete(slot)) this.inFlight.release(slot)
    else this.#upstream.release(slot)
  }
}
