// An answer leaves by what became of it: as it came, or as a local answer, or not at all (`dns.hold.on-limit`,
// `dns.on-degraded`; SEMANTICS 4). One flow and one counter an answer.

import { LOCAL } from '../dns/codes.ts'
import { OUTCOME_DEGRADED, OUTCOME_EXACT, OUTCOME_HELD_OUT } from './learner.ts'
import type { ProxyFlows } from './proxy-flows.ts'
import type { Responder } from './responder.ts'

export interface ReleaseCounters {
  exact: number
  degraded: number
  heldOut: number
  /** Held-out ones: SERVFAIL instead, nothing, or as they came. */
  heldOutServfail: number
  heldOutDropped: number
  heldOutReleased: number
}

export interface ReleaserOptions {
  readonly responder: Responder
  readonly flows: ProxyFlows
  readonly onLimit: 'servfail' | 'drop' | 'release'
  readonly onDegraded: 'release' | 'servfail'
}

export class Releaser {
  readonly #counters: ReleaseCounters
  readonly #to: ReleaserOptions

  constructor(options: ReleaserOptions, counters: ReleaseCounters) {
    this.#to = options
    this.#counters = counters
  }

  /** Answers the client of a slot. `rcode` and `addresses` are the answer's; its octets are copied. */
  release(
    outcome: number,
    slot: number,
    rcode: number,
    addresses: number,
    octets: Uint8Array,
    offset: number,
    length: number,
    overTcp: boolean,
  ): void {
    const { responder, flows, onDegraded } = this.#to
    flows.answered(slot, outcome, rcode, addresses)
    if (outcome === OUTCOME_EXACT) this.#counters.exact++
    else if (outcome === OUTCOME_DEGRADED) this.#counters.degraded++
    else this.#counters.heldOut++
    if (outcome === OUTCOME_HELD_OUT && this.#holdOut(slot)) return
    if (outcome === OUTCOME_DEGRADED && onDegraded === 'servfail') {
      responder.answerLocally(slot, LOCAL.degraded)
    } else {
      responder.answer(slot, octets, offset, length, overTcp, rcode)
    }
  }

  /** False: the answer is to be released all the same. */
  #holdOut(slot: number): boolean {
    const { responder, onLimit } = this.#to
    switch (onLimit) {
      case 'servfail':
        this.#counters.heldOutServfail++
        responder.answerLocally(slot, LOCAL.heldOut)
        return true
      case 'drop':
        this.#counters.heldOutDropped++
        responder.ignoreSlot(slot)
        return true
      case 'release':
        this.#counters.heldOutReleased++
        return false
    }
  }
}
