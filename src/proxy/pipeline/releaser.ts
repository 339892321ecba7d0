// An answer leaves by what became of it: as it came, without some addresses (stripping.ts), as a local answer, or not at
// all (`dns.hold.on-limit`, `dns.on-degraded`; docs/spec/semantics 4). One flow and one counter an answer.

import { LOCAL } from '../../dns/codes.ts'
import { OUTCOME_DEGRADED, OUTCOME_EXACT, OUTCOME_HELD_OUT, type Learner } from './learner.ts'
import type { PipelineCounters } from './pipeline-counters.ts'
import type { ProxyFlows } from './proxy-flows.ts'
import type { AnswerBatch } from '../messages/answer-batch.ts'
import { MessageView } from '../messages/message-view.ts'
import type { Responder } from '../server/responder.ts'
import type { Stripping } from './stripping.ts'

export interface ReleaserOptions {
  readonly responder: Responder
  readonly learner: Pick<Learner, 'rcodeOf' | 'countOf'>
  readonly stripping: Stripping
  readonly flows: ProxyFlows
  readonly onLimit: 'servfail' | 'drop' | 'release'
  readonly onDegraded: 'release' | 'servfail' | 'strip-addresses'
}

export class Releaser {
  readonly #counters: PipelineCounters
  readonly #options: ReleaserOptions
  readonly #message = new MessageView()

  constructor(options: ReleaserOptions, counters: PipelineCounters) {
    this.#options = options
    this.#counters = counters
  }

  /** Answers the client of answer `index` of a batch that the learner has read; its octets are copied. */
  release(answers: AnswerBatch, index: number, outcome: number): void {
    const { responder, learner, flows, onDegraded, stripping } = this.#options
    const slot = answers.slots[index]!
    const overTcp = answers.overTcp[index] === 1
    const rcode = learner.rcodeOf(index)
    flows.answered(slot, outcome, rcode, learner.countOf(index))
    if (outcome === OUTCOME_EXACT) this.#counters.exact++
    else if (outcome === OUTCOME_DEGRADED) this.#counters.degraded++
    else this.#counters.heldOut++
    if (outcome === OUTCOME_HELD_OUT && this.#holdOut(slot)) return
    if (outcome === OUTCOME_DEGRADED && onDegraded === 'servfail') {
      return responder.answerLocally(slot, LOCAL.degraded)
    }
    const message = answers.view(index, this.#message)
    const stripped = stripping.strip(index, outcome, message)
    if (stripped === 'same') {
      responder.answer(slot, message, overTcp, rcode)
    } else if (stripped === 'bad') {
      responder.answerLocally(slot, LOCAL.answerMalformed)
    } else {
      // Names written again can make it longer than what the client takes.
      const isCut = overTcp || stripping.length > message.length
      responder.answer(slot, message.set(stripping.octets, 0, stripping.length), isCut, rcode)
    }
  }

  /** False: the answer is to be released all the same. */
  #holdOut(slot: number): boolean {
    const { responder, onLimit } = this.#options
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
