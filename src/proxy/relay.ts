// What becomes of queries that a daemon forwarded before another one took over: it waits for the servers on, but what
// they answer is for the other one to learn and to release. Here every answer and every failure leaves as it comes, with
// the query and its client; nothing is settled, nothing is sent to a client.

import type { AnswerBatch, FailureBatch } from './messages/answer-batch.ts'
import { FAILED_TIMEOUT } from './messages/answer-batch.ts'
import type { MessageBatch } from './messages/batch.ts'
import { OF_OURS, type ClientColumns } from './messages/client-columns.ts'
import type { Fate, HandedQuery } from './handed.ts'
import type { Upstream } from './upstream/upstream.ts'

const NONE = new Uint8Array(0)

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
      this.#end(answers.slots[i]!, 'answered', answers.overTcp[i] === 1, answer)
    }
  }

  fail(failures: FailureBatch): void {
    for (let i = 0; i < failures.count; i++) {
      const fate = failures.reasons[i] === FAILED_TIMEOUT ? 'timeout' : 'socket'
      this.#end(failures.slots[i]!, fate, false, NONE)
    }
  }

  /** Queries that nobody forwarded yet. */
  admitWaited(batch: MessageBatch): void {
    for (let i = 0; i < batch.count; i++) {
      const query = copy(batch.octets(i), batch.offset(i), batch.length(i))
      this.#hand(batch, i, query, 'asked', false, NONE)
    }
  }

  /** Gives up what no server has answered. */
  giveUp(): void {
    const { inFlight } = this.#upstream
    for (let slot = 0; slot < inFlight.capacity && inFlight.count > 0; slot++) {
      if (!inFlight.isTaken(slot)) continue
      const query = copy(inFlight.octets(slot), inFlight.offset(slot), inFlight.length(slot))
      this.#hand(inFlight, slot, query, 'timeout', false, NONE)
      inFlight.release(slot)
    }
  }

  #end(slot: number, fate: Fate, overTcp: boolean, answer: Uint8Array): void {
    const { inFlight } = this.#upstream
    const query = copy(inFlight.octets(slot), inFlight.offset(slot), inFlight.length(slot))
    this.#hand(inFlight, slot, query, fate, overTcp, answer)
    this.#upstream.release(slot)
  }

  #hand(
    clients: ClientColumns,
    row: number,
    query: Uint8Array,
    fate: Fate,
    overTcp: boolean,
    answer: Uint8Array,
  ): void {
    // What we asked of our own accord the other one asks of its own.
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
      fate,
      overTcp,
      answer,
    })
  }
}

function copy(octets: Uint8Array, offset: number, length: number): Uint8Array {
  return octets.slice(offset, offset + length)
}
