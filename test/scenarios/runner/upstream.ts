// The upstream side of a scenario, in memory: it asks the zone's server without sockets. The table of queries in flight and the batches are
// the real ones, so one commit settles the answers of one turn, and slots are taken and released.

import { invariant } from '../../../src/core/invariant.ts'
import {
  FAILED_SOCKET,
  FAILED_TIMEOUT,
  Delivery,
  type DeliveryOptions,
} from '../../../src/proxy/messages/answer-batch.ts'
import { OVER_TCP } from '../../../src/proxy/messages/client-columns.ts'
import { InFlightTable, TABLE_FULL, CLIENT_FULL } from '../../../src/proxy/messages/in-flight.ts'
import { MessageView } from '../../../src/dns/message-view.ts'
import { SlotView } from '../../../src/proxy/messages/slot-view.ts'
import type { Upstream } from '../../../src/proxy/upstream/upstream.ts'
import { mkReply, type Zone } from './zone.ts'

export interface ScenarioUpstreamOptions extends DeliveryOptions {
  readonly zone: Zone
  readonly perClient: number
  readonly timeoutMs: number
}

export class ScenarioUpstream implements Pick<Upstream, 'forward' | 'release' | 'inFlight'> {
  readonly inFlight: InFlightTable
  readonly counters = { forwarded: 0, answers: 0, timeouts: 0, late: 0 }
  readonly #options: ScenarioUpstreamOptions
  readonly #delivery: Delivery
  readonly #view = new SlotView()
  /** Number of the query in a slot. An answer to another query is too late. */
  readonly #queries: Uint32Array

  constructor(options: ScenarioUpstreamOptions) {
    const { capacity, perClient } = options
    this.#options = options
    this.inFlight = new InFlightTable({ capacity, perClient })
    this.#queries = new Uint32Array(capacity)
    this.#delivery = new Delivery(options)
  }

  forward(...[batch, index, query, endpoint, generation]: Parameters<Upstream['forward']>) {
    const slot = this.inFlight.take(batch, index, query, endpoint, generation)
    if (slot === TABLE_FULL) return 'full' as const
    if (slot === CLIENT_FULL) return 'client-full' as const
    this.#queries[slot] = ++this.counters.forwarded
    this.#ask(slot)
    return 'forwarded' as const
  }

  release(slot: number): void {
    invariant(this.#queries[slot] === 0, `slot ${slot} is released after its query has ended`)
    this.inFlight.release(slot)
  }

  #ask(slot: number): void {
    const { zone, timeoutMs, clock } = this.#options
    const query = this.#queries[slot]!
    this.#view.read(this.inFlight, slot)
    const labels = labelsIn(this.inFlight.octets(slot), this.inFlight.offset(slot) + 12)
    const type = this.#view.qtype
    const reply = zone.replyTo(labels.join('.'), type)
    if (reply.kind === 'unreachable') {
      this.#end(slot, query)
      this.#delivery.failure(slot, FAILED_SOCKET)
      return
    }
    const isPrompt = reply.kind === 'answer' && reply.delayMs === 0
    if (!isPrompt) clock.after(timeoutMs, () => this.#timeOut(slot, query))
    if (reply.kind === 'silent') return
    const answer = (): void => this.#answer(slot, query, mkReply(labels, type, reply))
    if (isPrompt) clock.soon(answer)
    else clock.after(reply.delayMs, answer)
  }

  #answer(slot: number, query: number, octets: Uint8Array): void {
    if (!this.#end(slot, query)) {
      this.counters.late++
      return
    }
    this.counters.answers++
    const overTcp = this.inFlight.transports[slot] === OVER_TCP
    this.#delivery.answer(slot, 0, overTcp, MessageView.of(octets))
  }

  #timeOut(slot: number, query: number): void {
    if (!this.#end(slot, query)) return
    this.counters.timeouts++
    this.#delivery.failure(slot, FAILED_TIMEOUT)
  }

  /** Ends the query in the slot. Returns false if it has already ended. */
  #end(slot: number, query: number): boolean {
    if (this.#queries[slot] !== query) return false
    this.#queries[slot] = 0
    return true
  }
}

/** Labels of the name at `at`, each octet as one character, in its own case. */
function labelsIn(octets: Uint8Array, at: number): readonly string[] {
  const labels: string[] = []
  for (let i = at; octets[i] !== 0; i += 1 + (octets[i] ?? 0)) {
    labels.push(Buffer.from(octets.subarray(i + 1, i + 1 + (octets[i] ?? 0))).toString('latin1'))
  }
  return labels
}
