// The pipeline's decisions as flows: one entry a query that was refused, one a query that was answered. `reason` is
// always a constant: adding a flow allocates nothing.

import type { Clock } from '../../core/clock.ts'
import { FLOW_KINDS, type FlowKind } from '../../flows/record/flow-kinds.ts'
import type { FlowRing } from '../../flows/record/flow-ring.ts'
import type { QueryView } from '../../dns/query.ts'
import type { MessageBatch } from '../messages/batch.ts'
import type { InFlightTable } from '../messages/in-flight.ts'
import { HEADER_OCTETS } from '../../dns/wire.ts'

/** Type and class behind the name (RFC 1035 4.1.2). */
const QUESTION_FIXED_OCTETS = 4
const ANSWERED = FLOW_KINDS.indexOf('answered')
const FAILED = FLOW_KINDS.indexOf('upstream-failed')

/** A query of a batch that the pipeline has read. The pipeline sets one view again for each query. */
export interface AskedQuery {
  readonly query: QueryView
  readonly batch: MessageBatch
  readonly row: number
}

export class ProxyFlows {
  readonly #ring: FlowRing
  readonly #clock: Clock
  readonly #inFlight: InFlightTable
  /** How a forwarded query ended; set again for each. */
  readonly #end = { kind: 0, outcome: 0, rcode: 0, addresses: 0 }

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
    this.#ring.addDns(
      this.#clock.wall(),
      FLOW_KINDS.indexOf(kind),
      0,
      endpoint,
      query.name,
      query.nameLength,
      query.qtype,
      0,
      0,
      batch.families[row]!,
      batch.addressWords,
      row * 4,
      reason,
      0,
      deniedBy,
    )
  }

  answered(slot: number, outcome: number, rcode: number, addresses: number): void {
    const end = this.#end
    end.kind = ANSWERED
    end.outcome = outcome
    end.rcode = rcode
    end.addresses = addresses
    this.#add(slot, '')
  }

  failed(slot: number, reason: string): void {
    const end = this.#end
    end.kind = FAILED
    end.outcome = 0
    end.rcode = 0
    end.addresses = 0
    this.#add(slot, reason)
  }

  #add(slot: number, reason: string): void {
    const { kind, outcome, rcode, addresses } = this.#end
    const inFlight = this.#inFlight
    const headAndName = inFlight.questionEnds[slot]! - QUESTION_FIXED_OCTETS
    this.#ring.addDns(
      this.#clock.wall(),
      kind,
      outcome,
      inFlight.endpoints[slot]!,
      inFlight.octets(slot),
      headAndName - HEADER_OCTETS,
      inFlight.qtypes[slot]!,
      rcode,
      addresses,
      inFlight.families[slot]!,
      inFlight.addressWords,
      slot * 4,
      reason,
      inFlight.offset(slot) + HEADER_OCTETS,
    )
  }
}
