// Questions that a person asks in the name of an endpoint (`namegate ask --as`): each goes the whole way of the endpoint's
// own queries (verdict, forwarding, learning, commit), and its answer goes to the person. At most WAITING_MAX wait.

import type { EndpointId } from '../core/ids.ts'
import type { SocketAddress } from '../core/socket-address.ts'
import { MessageBatch } from './messages/batch.ts'
import { MessageView } from './messages/message-view.ts'
import { OF_OURS } from './messages/client-columns.ts'
import { PREWARM_MAX } from './prewarm.ts'

/** Longest query, and most that wait for their answers. */
export const OWN_QUERY_MAX = 512
const WAITING_MAX = 64
/** Ids below are those of prewarm.ts. */
const FIRST_ID = PREWARM_MAX

/** A query, the protocol that it would come over, and the server that it is for, where the endpoint chooses one. */
export interface OwnQuestion {
  readonly endpoint: EndpointId
  readonly query: Uint8Array
  readonly protocol: number
  readonly server: SocketAddress | undefined
}

/** What becomes of a question; undefined: it gets no answer (`deny-response: drop`). */
export type OnAnswer = (answer: Uint8Array | undefined) => void

export class OwnQuestions {
  readonly #admit: (batch: MessageBatch) => void
  readonly #batch = new MessageBatch({ capacity: 1, stride: OWN_QUERY_MAX })
  readonly #waiting = new Map<number, OnAnswer>()
  #last = FIRST_ID

  constructor(admit: (batch: MessageBatch) => void) {
    this.#admit = admit
  }

  /** Whether an id is of a question of this kind. */
  static owns(id: number): boolean {
    return id >= FIRST_ID
  }

  /** Asks; false when too many wait. */
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

  /** The end of a question; `octets` undefined: without an answer. */
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
