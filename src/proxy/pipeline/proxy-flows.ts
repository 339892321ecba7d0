// ProxyFlows records the pipeline's decisions: one flow for each query that was refused, was answered or failed.
// Every `reason` is a constant string, so adding a flow allocates nothing.

import type { Clock } from '../../core/clock.ts'
import { FLOW_KINDS, makeDnsFlow, type FlowKind } from '../../flows/record/flow-kinds.ts'
import type { FlowRing } from '../../flows/record/flow-ring.ts'
import type { QueryView } from '../../dns/query.ts'
import type { MessageBatch } from '../messages/batch.ts'
import type { InFlightTable } from '../messages/in-flight.ts'
import { HEADER_OCTETS } from '../../dns/wire.ts'

/** The octets of type and class after the name of a question (RFC 1035 4.1.2). */
const QUESTION_FIXED_OCTETS = 4
const ANSWERED = FLOW_KINDS.indexOf('answered')
const FAILED = FLOW_KINDS.indexOf('upstream-failed')

/** A query of a batch, read by the pipeline. The pipeline reuses one object for all queries. */
export interface AskedQuery {
  readonly query: QueryView
  readonly batch: MessageBatch
  readonly row: number
}

export class ProxyFlows {
  readonly #ring: FlowRing
  readonly #clock: Clock
  readonly #inFlight: InFlightTable
  /** One object for all flows: each call fills it, and the ring copies it. */
  readonly #flow = makeDnsFlow()

  constructor(options: {
    readonly ring: FlowRing
    readonly clock: Clock
    readonly inFlight: InFlightTable
  }) {
    this.#ring = options.ring
    this.#clock = options.clock
    this.#inFlight = options.inFlight
  }

  refused(kind: FlowKind, endpoint: number, asked: AskedQuery, reason = '', deniedBy = 0): void {
    const { query, batch, row } = asked
    const flow = this.#flow
    flow.kind = FLOW_KINDS.indexOf(kind)
    flow.outcome = 0
    flow.endpoint = endpoint
    flow.wire = query.name
    flow.nameAt = 0
    flow.nameLength = query.nameLength
    flow.qtype = query.qtype
    flow.rcode = 0
    flow.addresses = 0
    flow.family = batch.families[row]!
    flow.clients = batch.addressWords
    flow.clientAt = row * 4
    flow.reason = reason
    flow.rule = deniedBy
    this.#ring.addDns(this.#clock.wall(), flow)
  }

  answered(slot: number, outcome: number, rcode: number, addresses: number): void {
    const flow = this.#flow
    flow.kind = ANSWERED
    flow.outcome = outcome
    flow.rcode = rcode
    flow.addresses = addresses
    this.#addEnd(slot, '')
  }

  failed(slot: number, reason: string): void {
    const flow = this.#flow
    flow.kind = FAILED
    flow.outcome = 0
    flow.rcode = 0
    flow.addresses = 0
    this.#addEnd(slot, reason)
  }

  /** Adds the flow with the fields that `answered` or `failed` has set, and with those of the slot's query. */
  #addEnd(slot: number, reason: string): void {
    const inFlight = this.#inFlight
    const headAndName = inFlight.questionEnds[slot]! - QUESTION_FIXED_OCTETS
    const flow = this.#flow
    flow.endpoint = inFlight.endpoints[slot]!
    flow.wire = inFlight.octets(slot)
    flow.nameAt = inFlight.offset(slot) + HEADER_OCTETS
    flow.nameLength = headAndName - HEADER_OCTETS
    flow.qtype = inFlight.qtypes[slot]!
    flow.family = inFlight.families[slot]!
    flow.clients = inFlight.addressWords
    flow.clientAt = slot * 4
    flow.reason = reason
    flow.rule = 0
    this.#ring.addDns(this.#clock.wall(), flow)
  }
}
