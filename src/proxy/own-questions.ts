// OwnQuestions asks a question of an operator as if an endpoint asked it (`namegate ask --as`). The pipeline handles the question
// like a query of this endpoint: verdict, forwarding, learning, commit. The operator gets the answer. At most WAITING_MAX
// questions wait for their answers at the same time.

import type { EndpointId } from '../core/ids.ts'
import type { SocketAddress } from '../core/socket-address.ts'
import { MessageBatch } from './messages/batch.ts'
import { MessageView } from '../dns/message-view.ts'
import { OF_OURS } from './messages/client-columns.ts'
import { PREWARM_MAX } from './prewarm.ts'

/** The longest query, in octets. */
export const OWN_QUERY_MAX = 512
/** The largest number of questions that wait for their answers. */
const WAITING_MAX = 64
/** The lowest id of a question. prewarm.ts uses the lower ids. */
const FIRST_ID = PREWARM_MAX

/** A query. `protocol`: UDP or TCP. `server`: the server that the endpoint would choose; undefined if the pool chooses. */
export interface OwnQuestion {
  readonly endpoint: EndpointId
  readonly query: Uint8Array
  readonly protocol: number
  readonly server: SocketAddress | undefined
}

/** Receives the answer; undefined if the question gets no answer (`deny-response: drop`). */
export type OnAnswer = (answer: Uint8Array | undefined) => void

export class OwnQuestions {
  readonly #admit: (batch: MessageBatch) => void
  readonly #batch = new MessageBatch({ capacity: 1, stride: OWN_QUERY_MAX })
  readonly #waiting = new Map<number, OnAnswer>()
  #last = FIRST_ID

  constructor(admit: (batch: MessageBatch) => void) {
    this.#admit = admit
  }

  /** Returns true if the id belongs to a question of OwnQuestions. */
  static owns(id: number): boolean {
    return id >= FIRST_ID
  }

  /** Asks a question. Returns false if WAITING_MAX questions wait already. */
  ask({ endpoint, query, protocol, server }: OwnQuestion, onAnswer: OnAnswer): boolean {
    if (this.#waiting.size >= WAITING_MAX) return false
    const id = this.#freeId()
    const octets = Uint8Array.from(query)
    octets.set([id >> 8, id & 0xff])
    const batch = this.#batch
    const family = server?.family ?? 4
    batch.addTcp(endpoint, family, NOBODY, protocol, MessageView.of(octets))
    batch.transports[0] = OF_OURS
    if (server !== undefined) {
      batch.askedAddresses.set(server.octets)
      batch.askedPorts[0] = server.port
    }
    this.#waiting.set(id, onAnswer)
    try {
      this.#admit(batch)
    } finally {
      batch.clear()
    }
    return true
  }

  /** Ends a question with its answer; `octets` is undefined if there is no answer. */
  end(id: number, octets: Uint8Array | undefined): void {
    const onAnswer = this.#waiting.get(id)
    this.#waiting.delete(id)
    onAnswer?.(octets)
  }

  #freeId(): number {
    do this.#last = this.#last === 0xffff ? FIRST_ID : this.#last + 1
    while (this.#waiting.has(this.#last))
    return this.#last
  }
}

const NOBODY = new Uint8Array(16)
