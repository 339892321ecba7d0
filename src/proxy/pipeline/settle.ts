// Settlement settles answers. One synchronous call handles a batch. It reads the answers, learns their addresses, and brings
// the datapath up to date with one commit. Then it releases each answer by its outcome. If the datapath confirms the commit
// during the call, the answer leaves in the same turn. Otherwise the release queue holds the answer, which is settled again later.

import { AnswerView } from '../../dns/answer.ts'
import { LOCAL } from '../../dns/codes.ts'
import { MessageView } from '../../dns/message-view.ts'
import type { Clock } from '../../core/clock.ts'
import type { Committer } from '../../datapath/committer.ts'
import type { EndpointRegistry } from '../../endpoints/registry.ts'
import { FAILED_TIMEOUT, type AnswerBatch, type FailureBatch } from '../messages/answer-batch.ts'
import { SlotView } from '../messages/slot-view.ts'
import type { Responder } from '../server/responder.ts'
import type { Upstream } from '../upstream/upstream.ts'
import { UNMANAGED } from './admit.ts'
import { AnswerTimes } from './answer-times.ts'
import type { ClientEndpoints } from './client-endpoints.ts'
import type { Judge } from './judge.ts'
import {
  OUTCOME_DEGRADED,
  OUTCOME_EXACT,
  OUTCOME_HELD_OUT,
  OUTCOME_PENDING,
  type Learner,
} from './learner.ts'
import type { ProxyFlows } from './proxy-flows.ts'
import type { ReleaseQueue } from './release-queue.ts'
import type { Stripping } from './stripping.ts'

export interface SettlementOptions {
  /** A clock that does not stand still during a turn. */
  readonly clock: Clock
  readonly registry: EndpointRegistry
  readonly clients: ClientEndpoints
  readonly judge: Judge
  readonly learner: Learner
  readonly committer: Committer
  readonly upstream: Pick<Upstream, 'release' | 'inFlight'>
  readonly responder: Responder
  readonly releases: ReleaseQueue
  readonly flows: ProxyFlows
  readonly stripping: Stripping
  /** `dns.hold.on-limit`. */
  readonly onLimit: 'servfail' | 'drop' | 'release'
  /** `dns.on-degraded`. */
  readonly onDegraded: 'release' | 'servfail' | 'strip-addresses'
}

/**
 * The attempt at which answers are settled. `first`: they come from upstream. `again`: they were held, and can be held for longer.
 * `last`: they were held for `dns.hold.limit`, and must leave now.
 */
type Turn = 'first' | 'again' | 'last'

export class Settlement {
  /** Counts answers by how they ended, and queries that got no answer from upstream. */
  readonly counters = {
    answers: 0,
    malformedAnswers: 0,
    failedTimeout: 0,
    failedSocket: 0,
    /** Answers whose endpoint was removed between the query and the answer. */
    orphaned: 0,
    exact: 0,
    degraded: 0,
    heldOut: 0,
    /** Held-out answers for which the client got SERVFAIL. */
    heldOutServfail: 0,
    /** Held-out answers for which the client got nothing. */
    heldOutDropped: 0,
    /** Held-out answers that were released. */
    heldOutReleased: 0,
  }
  readonly times: AnswerTimes
  readonly #options: SettlementOptions
  readonly #slot = new SlotView()
  readonly #answer = new AnswerView()
  readonly #message = new MessageView()

  constructor(options: SettlementOptions) {
    this.#options = options
    this.times = new AnswerTimes({ clock: options.clock, inFlight: options.upstream.inFlight })
  }

  /** Settles answers from upstream: learns them together, commits once, then releases or holds each answer. */
  settle(answers: AnswerBatch): void {
    this.counters.answers += answers.count
    this.#settle(answers, 'first')
  }

  /** Settles held answers. The learner learns them again, because policy or endpoints can have changed during the hold. */
  settleHeld(answers: AnswerBatch, isLast: boolean): void {
    this.#settle(answers, isLast ? 'last' : 'again')
  }

  #settle(answers: AnswerBatch, turn: Turn): void {
    const { learner, committer } = this.#options
    learner.begin(turn !== 'first')
    for (let i = 0; i < answers.count; i++) this.#learnOne(answers, i)
    if (learner.changed) committer.commit()
    this.times.look()
    for (let i = 0; i < answers.count; i++) this.#endOne(answers, i, turn)
  }

  #learnOne(answers: AnswerBatch, i: number): void {
    const { registry, learner, upstream, judge } = this.#options
    const { inFlight } = upstream
    const slot = answers.slots[i]!
    const view = this.#answer
    this.#slot.read(inFlight, slot)
    const endpoint = registry.byNumber(inFlight.endpoints[slot]!)
    view.learnsHints = learner.look(endpoint?.id ?? UNMANAGED, this.#slot.name)
    const { octets, offset, length } = answers.view(i, this.#message)
    const status = view.read(octets, offset, length, this.#slot)
    if (this.#isUnmanaged(slot) || !judge.mayTeach(inFlight, slot)) {
      if (status === 'malformed') learner.addMalformed()
      else learner.addUntaught(view.rcode)
    } else if (endpoint === undefined || endpoint.generation !== inFlight.generations[slot]) {
      learner.addOrphan()
    } else if (status === 'malformed') {
      learner.addMalformed()
    } else {
      learner.add(endpoint.id, this.#slot, view)
    }
  }

  /** True if the client was unknown when its query was forwarded, and is still unknown. If it is known now, the answer is dropped. */
  #isUnmanaged(slot: number): boolean {
    const { upstream, clients } = this.#options
    const { inFlight } = upstream
    return inFlight.endpoints[slot] === UNMANAGED && clients.of(inFlight, slot) === undefined
  }

  /** Releases an answer and frees its slot, or holds both. Call it after the commit. */
  #endOne(answers: AnswerBatch, i: number, turn: Turn): void {
    const { learner, responder, releases, upstream } = this.#options
    const slot = answers.slots[i]!
    if (learner.isOrphan(i)) {
      this.counters.orphaned++
      responder.ignoreSlot(slot)
    } else if (learner.isMalformed(i)) {
      this.counters.malformedAnswers++
      this.times.add(this.times.failed, slot)
      responder.answerLocally(slot, LOCAL.answerMalformed)
    } else {
      const outcome = learner.outcomeOf(i)
      const isPending = outcome === OUTCOME_PENDING
      const mustWait = turn !== 'last' && (isPending || releases.isBehind(slot))
      if (mustWait && releases.hold(slot, answers, i, isPending)) return
      this.#release(answers, i, isPending ? OUTCOME_HELD_OUT : outcome)
    }
    if (turn !== 'first') releases.end(slot)
    upstream.release(slot)
  }

  /**
   * Ends an answer by its outcome: sends it unchanged, sends it without some addresses, sends a local answer, or sends nothing
   * (`dns.hold.on-limit`, `dns.on-degraded`; docs/spec/semantics 4). Each answer adds one flow and increments one outcome counter.
   */
  #release(answers: AnswerBatch, i: number, outcome: number): void {
    const { responder, learner, flows, onDegraded } = this.#options
    const slot = answers.slots[i]!
    flows.answered(slot, outcome, learner.rcodeOf(i), learner.countOf(i))
    this.#count(slot, outcome)
    if (outcome === OUTCOME_HELD_OUT && this.#holdOut(slot)) return
    if (outcome === OUTCOME_DEGRADED && onDegraded === 'servfail')
      return responder.answerLocally(slot, LOCAL.degraded)
    this.#passOn(answers, i, outcome)
  }

  #count(slot: number, outcome: number): void {
    const { counters, times } = this
    if (outcome === OUTCOME_EXACT) {
      counters.exact++
      times.add(times.exact, slot)
    } else if (outcome === OUTCOME_DEGRADED) {
      counters.degraded++
      times.add(times.degraded, slot)
    } else {
      counters.heldOut++
      times.add(times.heldOut, slot)
    }
  }

  /** Applies `dns.hold.on-limit` to a held-out answer. Returns false if the answer must be released. */
  #holdOut(slot: number): boolean {
    const { responder, onLimit } = this.#options
    switch (onLimit) {
      case 'servfail':
        this.counters.heldOutServfail++
        responder.answerLocally(slot, LOCAL.heldOut)
        return true
      case 'drop':
        this.counters.heldOutDropped++
        responder.ignoreSlot(slot)
        return true
      case 'release':
        this.counters.heldOutReleased++
        return false
    }
  }

  /** Sends the upstream's message to the client. If the configuration says so, some addresses are removed first. */
  #passOn(answers: AnswerBatch, i: number, outcome: number): void {
    const { responder, learner, stripping } = this.#options
    const slot = answers.slots[i]!
    const overTcp = answers.overTcp[i] === 1
    const rcode = learner.rcodeOf(i)
    const message = answers.view(i, this.#message)
    const stripped = stripping.strip(i, outcome, message)
    if (stripped === 'same') {
      responder.answer(slot, message, overTcp, rcode)
    } else if (stripped === 'bad') {
      responder.answerLocally(slot, LOCAL.answerMalformed)
    } else {
      // When the strip removes the first copy of a name, it writes the next copy in full. So the message can grow too long.
      const isCut = overTcp || stripping.length > message.length
      responder.answer(slot, message.set(stripping.octets, 0, stripping.length), isCut, rcode)
    }
  }

  /** Sends SERVFAIL for queries that no server answered, and frees their slots. */
  fail(failures: FailureBatch): void {
    const { responder, upstream, flows } = this.#options
    this.times.look()
    for (let i = 0; i < failures.count; i++) {
      const slot = failures.slots[i]!
      const isTimeout = failures.reasons[i] === FAILED_TIMEOUT
      if (isTimeout) this.counters.failedTimeout++
      else this.counters.failedSocket++
      this.times.add(this.times.failed, slot)
      flows.failed(slot, isTimeout ? 'timeout' : 'socket error')
      responder.answerLocally(slot, isTimeout ? LOCAL.upstreamTimeout : LOCAL.upstreamSocket)
      upstream.release(slot)
    }
  }
}
