// The way of a query and of its answer, each a synchronous step over a batch; the whole product on one
// screen. `admit`: who asks, may it ask this name, then forward. `settle`: read the answers, learn what
// they teach, make the datapath match with one commit for all of them, and only then release each by what
// became of it. An answer leaves in the turn it came, after the kernel confirmed; where the kernel takes longer, it
// waits in the release queue and is settled again.

import { endpointId, generation, type EndpointId, type Generation } from '../../core/ids.ts'
import { AUDITED, MAY_ASK } from '../../enforcement/dns-verdicts.ts'
import { LOCAL, type LocalAnswer } from '../../dns/codes.ts'
import { AnswerView } from '../../dns/answer.ts'
import { QueryView, type QueryStatus } from '../../dns/query.ts'
import { FAILED_TIMEOUT, type AnswerBatch, type FailureBatch } from '../messages/answer-batch.ts'
import { MessageBatch } from '../messages/batch.ts'
import { OVER_UDP } from '../messages/client-columns.ts'
import { OUTCOME_HELD_OUT, OUTCOME_PENDING } from './learner.ts'
import { reasonOf, SERVER_UNTRUSTED, SOURCES_SILENT } from './judge.ts'
import type { Committer } from '../../datapath/committer.ts'
import type { EndpointRegistry } from '../../endpoints/registry.ts'
import type { Backlog } from './backlog.ts'
import type { ClientEndpoints } from './client-endpoints.ts'
import type { Judge } from './judge.ts'
import type { Learner } from './learner.ts'
import type { ProxyFlows } from './proxy-flows.ts'
import type { ReleaseQueue } from './release-queue.ts'
import type { Responder } from '../server/responder.ts'
import type { SelfCheck } from '../self-check.ts'
import type { Stripping } from './stripping.ts'
import type { UnknownClients } from './unknown-clients.ts'
import type { Upstream } from '../upstream/upstream.ts'
import { makePipelineCounters } from './pipeline-counters.ts'
import { BOUNDS, CLOSED, DENIED, localAnswerTo } from './refusals.ts'
import { Releaser } from './releaser.ts'
import { SlotView } from '../messages/slot-view.ts'

/** What a permitted query goes to. */
export type Forwarder = Pick<Upstream, 'forward'>

export interface PipelineOptions {
  readonly registry: EndpointRegistry
  readonly clients: ClientEndpoints
  readonly judge: Judge
  readonly learner: Learner
  readonly committer: Committer
  readonly upstream: Forwarder & Pick<Upstream, 'release' | 'inFlight'>
  readonly responder: Responder
  readonly releases: ReleaseQueue
  readonly flows: ProxyFlows
  readonly backlog: Backlog
  readonly unknown: Pick<UnknownClients, 'hold'>
  /** What becomes of a query whose client is still unknown: `unknown-clients.then`. */
  readonly onUnknown: 'refuse' | 'allow-unmanaged'
  /** Whether policy is loaded. */
  readonly isReady: () => boolean
  readonly denyResponse: 'refused' | 'nxdomain' | 'nodata' | 'drop'
  readonly onLimit: 'servfail' | 'drop' | 'release'
  readonly onDegraded: 'release' | 'servfail' | 'strip-addresses'
  readonly stripping: Stripping
  /** Queries of our own that ask whether all of this works; undefined without a self-check. */
  readonly selfCheck?: SelfCheck | undefined
}

/** Whether answers come from upstream, were held and may be held on, or were held as long as they may be. */
type Turn = 'first' | 'again' | 'last'

/** Stands for the endpoint of queries that are forwarded for no known endpoint; no endpoint has this number. */
const UNMANAGED = endpointId(0)
const NO_GENERATION = generation(0)

export class Pipeline {
  readonly counters = makePipelineCounters()
  readonly #options: PipelineOptions
  readonly #query = new QueryView()
  /** The query at hand, as flows take it. */
  readonly #asked = {
    query: this.#query,
    batch: new MessageBatch({ capacity: 1, stride: 0 }),
    row: 0,
  }
  readonly #slot = new SlotView()
  readonly #answer = new AnswerView()
  readonly #releaser: Releaser
  /** The upstream, except while a query of another daemon is admitted. */
  #forwarder: Forwarder
  readonly #denied: LocalAnswer | undefined
  readonly #closed: LocalAnswer | undefined

  constructor(options: PipelineOptions) {
    this.#options = options
    this.#forwarder = options.upstream
    this.#releaser = new Releaser(options, this.counters)
    this.#denied = DENIED[options.denyResponse]
    this.#closed = CLOSED[options.denyResponse]
  }

  /** Queries: each is answered at once, forwarded, or waits for its endpoint to become known. */
  admit(batch: MessageBatch): void {
    this.counters.queries += batch.count
    const behind = this.#options.backlog.isBehind(batch)
    for (let i = 0; i < batch.count; i++) {
      if (!behind || !this.#passOver(batch, i)) this.#admitOne(batch, i, false)
    }
  }

  /** While more comes than can be taken in: passes over clients that have all they may in flight. */
  #passOver(batch: MessageBatch, i: number): boolean {
    const { inFlight } = this.#options.upstream
    if (batch.transports[i] !== OVER_UDP || !inFlight.isClientFull(batch, i)) return false
    this.counters.passedOver++
    return true
  }

  /** Queries that have waited for their endpoint, and those of our own: each is answered or forwarded. */
  admitWaited(batch: MessageBatch): void {
    for (let i = 0; i < batch.count; i++) this.#admitOne(batch, i, true)
  }

  /** Queries that the daemon before this one took on: `forwarder` takes those that may go on. */
  admitHanded(batch: MessageBatch, forwarder: Forwarder): void {
    this.#forwarder = forwarder
    try {
      this.admit(batch)
    } finally {
      this.#forwarder = this.#options.upstream
    }
  }

  #admitOne(batch: MessageBatch, i: number, waited: boolean): void {
    const { responder, judge, clients, flows, selfCheck } = this.#options
    const query = this.#query
    const asked = this.#asked
    asked.batch = batch
    asked.row = i
    const status = query.read(batch.octets(i), batch.offset(i), batch.length(i))
    if (status !== 'ok' || batch.oversized[i] === 1) return this.#malformed(batch, i, status)
    if (!this.#options.isReady()) {
      this.counters.notReady++
      return responder.refuse(batch, i, query, LOCAL.notReady)
    }
    if (selfCheck?.isOurs(query) === true) return selfCheck.take(batch, i)
    const endpoint = clients.of(batch, i)
    if (clients.asksListener(batch, i))
      return this.#deny(batch, i, endpoint?.id ?? UNMANAGED, SERVER_UNTRUSTED)
    if (endpoint === undefined) return this.#unknown(batch, i, waited)
    if (!clients.arrivesRightly(endpoint, batch, i)) {
      this.counters.interfaceMismatch++
      flows.refused('interface-mismatch', endpoint.id, asked)
      return responder.refuse(batch, i, query, LOCAL.clientUnknown)
    }
    const verdict = judge.judge(endpoint.id, batch, i, query.name)
    if (verdict !== MAY_ASK) {
      const isLenient = clients.isAudited(endpoint) && verdict !== SERVER_UNTRUSTED
      if (verdict !== AUDITED && !isLenient) return this.#deny(batch, i, endpoint.id, verdict)
      this.counters.audited++
      const reason = verdict === SOURCES_SILENT ? reasonOf(verdict) : ''
      flows.refused('audited', endpoint.id, asked, reason, judge.deniedBy)
    }
    this.#forward(batch, i, endpoint.id, endpoint.generation)
  }

  #forward(batch: MessageBatch, i: number, endpoint: EndpointId, generation: Generation): void {
    const { responder, flows } = this.#options
    const query = this.#query
    const result = this.#forwarder.forward(batch, i, query, endpoint, generation)
    if (result === 'forwarded') {
      this.counters.allowed++
      return
    }
    this.counters.overloaded++
    flows.refused('overloaded', endpoint, this.#asked, BOUNDS[result])
    responder.refuse(batch, i, query, LOCAL.overloaded)
  }

  #malformed(batch: MessageBatch, i: number, status: QueryStatus): void {
    const { responder, clients, flows } = this.#options
    const query = this.#query
    this.counters.malformedQueries++
    const isCut = batch.oversized[i] === 1
    const endpoint = clients.of(batch, i)?.id ?? 0
    flows.refused('malformed', endpoint, this.#asked, isCut ? 'too long' : status)
    if (status === 'silent') responder.ignore(batch, i)
    else responder.refuse(batch, i, query, isCut ? LOCAL.queryMalformed : localAnswerTo(status))
  }

  /** Of a client that no endpoint is known for. It waits once, so that an endpoint that is just being told of is served. */
  #unknown(batch: MessageBatch, i: number, waited: boolean): void {
    const { responder, unknown, onUnknown, flows, judge } = this.#options
    const held = waited ? 'no-wait' : unknown.hold(batch, i)
    if (held === 'held') return
    if (held === 'no-wait' && onUnknown === 'allow-unmanaged') {
      if (judge.isUntrusted(batch, i)) return this.#deny(batch, i, UNMANAGED, SERVER_UNTRUSTED)
      this.counters.unmanaged++
      return this.#forward(batch, i, UNMANAGED, NO_GENERATION)
    }
    this.counters.unknownClients++
    flows.refused('unknown-client', 0, this.#asked)
    responder.refuse(batch, i, this.#query, LOCAL.clientUnknown)
  }

  #deny(batch: MessageBatch, i: number, endpoint: EndpointId, verdict: number): void {
    const { responder, flows, judge } = this.#options
    const reason = reasonOf(verdict)
    const answer = verdict === SOURCES_SILENT ? this.#closed : this.#denied
    const by = verdict === SERVER_UNTRUSTED ? 0 : judge.deniedBy
    this.counters.denied++
    flows.refused('denied', endpoint, this.#asked, reason, by)
    if (reason === 'server') responder.refuse(batch, i, this.#query, LOCAL.serverProhibited)
    else if (answer === undefined) responder.ignore(batch, i)
    else responder.refuse(batch, i, this.#query, answer)
  }

  /** Answers: learned together, committed once, released one by one or held. */
  settle(answers: AnswerBatch): void {
    this.counters.answers += answers.count
    this.#settle(answers, 'first')
  }

  /** Answers that were held. What they teach is learned again: it may have changed meanwhile. */
  settleHeld(answers: AnswerBatch, isLast: boolean): void {
    this.#settle(answers, isLast ? 'last' : 'again')
  }

  #settle(answers: AnswerBatch, turn: Turn): void {
    const { learner, committer } = this.#options
    learner.begin(turn !== 'first')
    for (let i = 0; i < answers.count; i++) this.#learnOne(answers, i)
    if (learner.changed) committer.commit()
    for (let i = 0; i < answers.count; i++) this.#releaseOne(answers, i, turn)
  }

  #learnOne(answers: AnswerBatch, i: number): void {
    const { registry, learner, upstream, judge } = this.#options
    const { inFlight } = upstream
    const slot = answers.slots[i]!
    const view = this.#answer
    this.#slot.read(inFlight, slot)
    const endpoint = registry.byNumber(inFlight.endpoints[slot]!)
    view.learnsHints = learner.look(endpoint?.id ?? UNMANAGED, this.#slot.name)
    const status = view.read(answers.octets(i), answers.offset(i), answers.length(i), this.#slot)
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

  /** Forwarded for no known endpoint, and still of none: an answer that an endpoint would have to learn is not released. */
  #isUnmanaged(slot: number): boolean {
    const { upstream, clients } = this.#options
    const { inFlight } = upstream
    return inFlight.endpoints[slot] === UNMANAGED && clients.of(inFlight, slot) === undefined
  }

  #releaseOne(answers: AnswerBatch, i: number, turn: Turn): void {
    const { learner, responder, releases, upstream } = this.#options
    const slot = answers.slots[i]!
    if (learner.isOrphan(i)) {
      this.counters.orphaned++
      responder.ignoreSlot(slot)
    } else if (learner.isMalformed(i)) {
      this.counters.malformedAnswers++
      responder.answerLocally(slot, LOCAL.answerMalformed)
    } else {
      const outcome = learner.outcomeOf(i)
      const isPending = outcome === OUTCOME_PENDING
      const mustWait = turn !== 'last' && (isPending || releases.isBehind(slot))
      if (mustWait && releases.hold(slot, answers, i, isPending)) return
      this.#releaser.release(answers, i, isPending ? OUTCOME_HELD_OUT : outcome)
    }
    if (turn !== 'first') releases.end(slot)
    upstream.release(slot)
  }

  /** Queries that no server answered. */
  fail(failures: FailureBatch): void {
    const { responder, upstream, flows } = this.#options
    for (let i = 0; i < failures.count; i++) {
      const slot = failures.slots[i]!
      const timeout = failures.reasons[i] === FAILED_TIMEOUT
      if (timeout) this.counters.failedTimeout++
      else this.counters.failedSocket++
      flows.failed(slot, timeout ? 'timeout' : 'socket error')
      responder.answerLocally(slot, timeout ? LOCAL.upstreamTimeout : LOCAL.upstreamSocket)
      upstream.release(slot)
    }
  }
}
