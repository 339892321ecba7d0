// This file hands over queries during a take-over: the source has forwarded them, and the successor answers them. `Relay` runs
// in the source and gives the answers of servers to the successor. `HandedQueries` runs in the successor. It admits each query
// under the successor's policy, learns the answer, and releases it like every other answer.

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
import { MessageView } from '../dns/message-view.ts'
import { OF_OURS, type ClientColumns } from './messages/client-columns.ts'
import { CLIENT_FULL, TABLE_FULL } from './messages/in-flight.ts'
import { copyOctets } from './messages/octet-store.ts'
import type { Admission, Forwarder } from './pipeline/admit.ts'
import type { Settlement } from './pipeline/settle.ts'
import type { ForwardResult, Upstream } from './upstream/upstream.ts'

const STRIDE = 4096

/** The part of HandedQuery that says how the query ended. */
type End = Pick<HandedQuery, 'fate' | 'overTcp' | 'answer'>

const TIMEOUT: End = { fate: 'timeout', overTcp: false, answer: new Uint8Array(0) }

/** Relay gives every answer and every failure to `onQuery`, with the query and its client. It sends nothing to a client. */
export class Relay {
  readonly #upstream: Pick<Upstream, 'inFlight' | 'release'>
  readonly #onQuery: (handed: HandedQuery) => void
  readonly #message = new MessageView()

  constructor(
    upstream: Pick<Upstream, 'inFlight' | 'release'>,
    onQuery: (handed: HandedQuery) => void,
  ) {
    this.#upstream = upstream
    this.#onQuery = onQuery
  }

  settle(answers: AnswerBatch): void {
    for (let i = 0; i < answers.count; i++) {
      const answer = answers.view(i, this.#message).copy()
      this.#end(answers.slots[i]!, { fate: 'answered', overTcp: answers.overTcp[i] === 1, answer })
    }
  }

  fail(failures: FailureBatch): void {
    for (let i = 0; i < failures.count; i++) {
      const isTimeout = failures.reasons[i] === FAILED_TIMEOUT
      this.#end(failures.slots[i]!, isTimeout ? TIMEOUT : { ...TIMEOUT, fate: 'socket' })
    }
  }

  /** Gives queries that were not forwarded to `onQuery`. */
  admitWaited(batch: MessageBatch): void {
    for (let i = 0; i < batch.count; i++) {
      const query = batch.view(i, this.#message).copy()
      this.#hand(batch, i, query, { ...TIMEOUT, fate: 'asked' })
    }
  }

  /** Gives the queries that no server has answered to `onQuery`, as timed out. */
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
    const query = inFlight.view(slot, this.#message).copy()
    this.#hand(inFlight, slot, query, end)
  }

  #hand(clients: ClientColumns, row: number, query: Uint8Array, end: End): void {
    // A query of namegate itself is not handed over, because the successor makes such queries itself.
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

/** The parts of the proxy that HandedQueries uses. */
interface AdmittingProxy {
  readonly admission: Admission
  readonly settlement: Settlement
  readonly upstream: Upstream
}

/** HandedQueries admits queries of the source. It acts as their forwarder, because the source has already got their answers. */
export class HandedQueries implements Forwarder {
  readonly #proxy: AdmittingProxy
  readonly #batch = new MessageBatch({ capacity: 1, stride: STRIDE })
  readonly #answers = new AnswerBatch(1)
  readonly #failures = new FailureBatch(1)
  #handed: HandedQuery | undefined

  constructor(proxy: AdmittingProxy) {
    this.#proxy = proxy
  }

  /** Admits one query. Its channel must be a listener or connection of this daemon. */
  take(handed: HandedQuery): void {
    const batch = this.#batch
    const { admission, settlement } = this.#proxy
    const { channel, family, address, port, query } = handed
    batch.addTcp(channel, family, address, port, MessageView.of(query))
    batch.transports[0] = handed.transport
    batch.interfaces[0] = handed.interfaceIndex
    batch.askedPorts[0] = handed.askedPort
    copyOctets(handed.asked, 0, batch.askedAddresses, 0, 16)
    this.#handed = handed.fate === 'asked' ? undefined : handed
    try {
      admission.admitHanded(batch, this)
      if (this.#answers.count > 0) settlement.settle(this.#answers)
      if (this.#failures.count > 0) settlement.fail(this.#failures)
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
    const { upstream } = this.#proxy
    const handed = this.#handed
    if (handed === undefined) {
      return upstream.forward(batch, index, query, endpoint, generation)
    }
    const slot = upstream.takeAnswered(batch, index, query, endpoint, generation)
    if (slot === TABLE_FULL) return 'full'
    if (slot === CLIENT_FULL) return 'client-full'
    const { answer, fate, overTcp } = handed
    if (fate === 'answered') this.#answers.add(slot, 0, overTcp, MessageView.of(answer))
    else this.#failures.add(slot, fate === 'timeout' ? FAILED_TIMEOUT : FAILED_SOCKET)
    return 'forwarded'
  }
}
