// A pass over the model's connections in the order of src/datapath/ebpf/maps/peers.ts: established TCP, then connections of UDP and SCTP.
// Visits the connections that the endpoint began. Removes TCP connections that are idle or belong to an older generation.

import type { Clock } from '../../../../src/core/clock.ts'
import type { EndpointId, Generation } from '../../../../src/core/ids.ts'
import type { Family } from '../../../../src/core/ip.ts'
import { SCTP, UDP } from '../../../../src/core/protocol.ts'
import type { PeerScan } from '../../../../src/datapath/abilities.ts'

/** Owner of tuples that belong to any endpoint. */
const ANY_OWNER = 0

type VisitPeer = Parameters<PeerScan['next']>[1]

export type State = 'new' | 'answered' | 'open' | 'closing' | 'reset'

export interface Connection {
  readonly protocol: number
  readonly endpoint: EndpointId
  readonly generation: Generation
  readonly family: Family
  readonly peer: Uint8Array
  began: 'endpoint' | 'peer'
  state: State
  seen: number
  finLocal: boolean
  finPeer: boolean
  afterLocal: boolean
  afterPeer: boolean
}

export interface ConnectionScanOptions {
  readonly clock: Clock
  readonly tcpIdleMs: number
  readonly udpIdleMs: number
  readonly settled: ReadonlyMap<string, Connection>
  readonly unsettled: ReadonlyMap<string, Connection>
  readonly generationOf: (id: EndpointId) => number
  readonly onOver: (key: string, connection: Connection) => void
}

export class ConnectionScan implements PeerScan {
  readonly #in: ConnectionScanOptions
  readonly #settled: Iterator<[string, Connection]>
  readonly #unsettled: Iterator<Connection>

  constructor(options: ConnectionScanOptions) {
    this.#in = options
    this.#settled = options.settled.entries()
    this.#unsettled = options.unsettled.values()
  }

  next(limit: number, visit: VisitPeer): boolean {
    for (let i = 0; i < limit; i++) {
      const next = this.#settled.next()
      if (next.done === true) return this.#nextFlows(limit - i, visit)
      const [key, connection] = next.value
      const idle = this.#isSilent(connection, this.#in.tcpIdleMs)
      if (idle || !this.#isPresent(connection)) this.#in.onOver(key, connection)
      else visitBegun(connection, visit)
    }
    return false
  }

  #nextFlows(limit: number, visit: VisitPeer): boolean {
    for (let i = 0; i < limit; i++) {
      const next = this.#unsettled.next()
      if (next.done === true) return true
      const flow = next.value
      if (flow.protocol !== UDP && flow.protocol !== SCTP) continue
      if (!this.#isSilent(flow, this.#in.udpIdleMs) && this.#isPresent(flow))
        visitBegun(flow, visit)
    }
    return false
  }

  #isSilent({ seen }: Connection, milliseconds: number): boolean {
    return this.#in.clock.now() - seen > milliseconds
  }

  #isPresent({ endpoint, generation }: Connection): boolean {
    return endpoint !== ANY_OWNER && this.#in.generationOf(endpoint) === generation
  }
}

function visitBegun({ began, endpoint, family, peer }: Connection, visit: VisitPeer): void {
  if (began === 'endpoint') visit(endpoint, family, peer)
}
