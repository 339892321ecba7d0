// Queries that one daemon forwarded and another one answers. Both ends exist only once a take-over has happened: the
// `Relay` of the daemon that leaves passes on what servers answer, and `HandedQueries` of its successor admits each
// query under its own policy, learns the answer, and releases it like every other answer.

import type { EndpointId, Generation } from '../core/ids.ts'
import type { QueryView } from '../dns/query.ts'
import type { HandedQuery } from './handed.ts'
import {
  AnswerBatch,
  FAILED_SOCKET,
  FAILED_TIMEOUT,
  FailureBatch,
} from './messages/answer-batch.ts'
import { MessageBatch } from './messages/batch.ts'
import { MessageView } from './messages/message-view.ts'
import { OF_OURS, type ClientColumns } from './messages/client-columns.ts'
import { CLIENT_FULL, TABLE_FULL } from './messages/in-flight.ts'
import { copyOctets, copyOf } from './messages/octet-store.ts'
import type { Forwarder, Pipeline } from './pipeline/pipeline.ts'
import type { ForwardResult, Upstream } from './upstream/upstream.ts'

const STRIDE = 4096

/** What became of a query. */
type End = Pick<HandedQuery, 'fate' | 'overTcp' | 'answer'>

const TIMEOUT: End = { fate: 'timeout', overTcp: false, answer: new Uint8Array(0) }

/** Every answer and every failure leaves as it comes, with the query and its client. Nothing is sent to a client. */
export class Relay {
  readonly #upstream: Pick<Upstream, 'inFlight' | 'release'>
  readonly #onQuery: (handed: HandedQuery) => void

  constructor(
    upstream: Pick<Upstream, 'inFlight' | 'release'>,
    onQuery: (handed: HandedQuery) => void,
  ) {
    this.#upstream = upstream
    this.#onQuery = onQuery
  }

  settle(answers: AnswerBatch): void {
    for (let i = 0; i < answers.count; i++) {
      const offset = answers.offset(i)
      const answer = answers.octets(i).slice(offset, offset + answers.length(i))
      this.#end(answers.slots[i]!, { fate: 'answered', overTcp: answers.overTcp[i] === 1, answer })
    }
  }

  fail(failures: FailureBatch): void {
    for (let i = 0; i < failures.count; i++) {
      const isTimeout = failures.reasons[i] === FAILED_TIMEOUT
      this.#end(failures.slots[i]!, isTimeout ? TIMEOUT : { ...TIMEOUT, fate: 'socket' })
    }
  }

  /** Queries that were not forwarded yet. */
  admitWaited(batch: MessageBatch): void {
    for (let i = 0; i < batch.count; i++) {
      const query = copyOf(batch.octets(i), batch.offset(i), batch.length(i))
      this.#hand(batch, i, query, { ...TIMEOUT, fate: 'asked' })
    }
  }

  /** Gives up what no server has answered. */
  giveUp(): void {
    const { inFlight } = this.#upstream
    for (let slot = 0; slot < inFlight.capacity && inFlight.count > 0; slot++) {
      if (!inFlight.isTaken(slot)) continue
      this.#handSlot(slot, TIMEOUT)
      inFlight.release(slot)
    }
  }

  #end(slot: number, end: End): void {
    this.#handSlot(slot, end)
    this.#upstream.release(slot)
  }

  #handSlot(slot: number, end: End): void {
    const { inFlight } = this.#upstream
    const query = copyOf(inFlight.octets(slot), inFlight.offset(slot), inFlight.length(slot))
    this.#hand(inFlight, slot, query, end)
  }

  #hand(clients: ClientColumns, row: number, query: Uint8Array, end: End): void {
    // The successor asks its own questions.
    if (clients.transports[row] === OF_OURS) return
    const at = row * 16
    this.#onQuery({
      family: clients.families[row] === 4 ? 4 : 6,
      address: clients.addresses.slice(at, at + 16),
      port: clients.ports[row]!,
      transport: clients.transports[row]!,
      channel: clients.channels[row]!,
      interfaceIndex: clients.interfaces[row]!,
      asked: clients.askedAddresses.slice(at, at + 16),
      askedPort: clients.askedPorts[row]!,
      query,
      ...end,
    })
  }
}

/** Takes on queries of the daemon before this one. Where others are forwarded, these have their answer already. */
export class HandedQueries implements Forwarder {
  readonly #upstream: Upstream
  readonly #pipeline: Pipeline
  readonly #batch = new MessageBatch({ capacity: 1, stride: STRIDE })
  readonly #answers = new AnswerBatch(1)
  readonly #failures = new FailureBatch(1)
  #handed: HandedQuery | undefined

  constructor(upstream: Upstream, pipeline: Pipeline) {
    this.#upstream = upstream
    this.#pipeline = pipeline
  }

  /** Takes on one query, whose channel is one of this daemon. */
  take(handed: HandedQuery): void {
    const batch = this.#batch
    const pipeline = this.#pipeline
    const { channel, family, address, port, query } = handed
    batch.addTcp(channel, family, address, port, MessageView.of(query))
    batch.transports[0] = handed.transport
    batch.interfaces[0] = handed.interfaceIndex
    batch.askedPorts[0] = handed.askedPort
    copyOctets(handed.asked, 0, batch.askedAddresses, 0, 16)
    this.#handed = handed.fate === 'asked' ? undefined : handed
    try {
      pipeline.admitHanded(batch, this)
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
    const slot = this.#upstream.takeAnswered(batch, index, query, endpoint, generation)
    if (slot === TABLE_FULL) return 'full'
    if (slot === CLIENT_FULL) return 'client-full'
    const { answer, fate, overTcp } = handed
    if (fate === 'answered') this.#answers.add(slot, 0, overTcp, MessageView.of(answer))
    else this.#failures.add(slot, fate === 'timeout' ? FAILED_TIMEOUT : FAILED_SOCKET)
    return 'forwarded'
  }
}
