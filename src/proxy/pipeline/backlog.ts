// Whether queries come faster than they are taken in: then they wait in the sockets' buffers, everybody's behind each
// other's, until the kernel drops what comes. Seen by the batches: while each one is full, more is waiting.
// When that has gone on for BEHIND_MS, queries of clients that already have all they may in flight are passed over
// without a look and without an answer, so that those of the others come up in time. A query that is passed over would have been
// shed; with the buffer emptied, shed queries are answered again.
// Node's own sockets give small batches, so with them no query is passed over, and the kernel drops.

import type { Clock } from '../../core/clock.ts'
import type { MessageBatch } from '../messages/batch.ts'

/** Shorter than any client's patience, longer than a collection of garbage. */
const BEHIND_MS = 50
const NEVER = -1

export class Backlog {
  readonly #clock: Clock
  /** When the first full batch of the present row came. */
  #fullSince = NEVER

  constructor(options: { readonly clock: Clock }) {
    this.#clock = options.clock
  }

  /** Looks at the batch that is taken in next; whether those before it have long been as full as it is. */
  isBehind(batch: MessageBatch): boolean {
    if (!batch.full) {
      this.#fullSince = NEVER
      return false
    }
    const now = this.#clock.now()
    if (this.#fullSince === NEVER) this.#fullSince = now
    return now - this.#fullSince > BEHIND_MS
  }
}
