// Admission admits queries. One synchronous call handles a batch. For each query, Admission finds the endpoint that asks, and
// checks if policy allows the name. Then it forwards the query or answers it locally. A query of an unknown client waits until
// its endpoint becomes known. settle.ts handles the answers from upstream.

import { endpointId, generation, type EndpointId, type Generation } from '../../core/ids.ts'
import type { Clock } from '../../core/clock.ts'
import { AUDITED, MAY_ASK } from '../../enforcement/dns-verdicts.ts'
import { LOCAL, type LocalAnswer } from '../../dns/codes.ts'
import { MessageView } from '../../dns/message-view.ts'
import { QueryView, type QueryStatus } from '../../dns/query.ts'
import { MessageBatch } from '../messages/batch.ts'
import { OVER_UDP } from '../messages/client-columns.ts'
import { reasonOf, SERVER_UNTRUSTED, SOURCES_SILENT, type Judge } from './judge.ts'
import type { ClientEndpoints } from './client-endpoints.ts'
import type { ProxyFlows } from './proxy-flows.ts'
import type { Responder } from '../server/responder.ts'
import type { SelfCheck } from '../self-check.ts'
import type { UnknownClients } from './unknown-clients.ts'
import type { ForwardResult, Upstream } from '../upstream/upstream.ts'

/** Receives allowed queries: the upstream, or another forwarder during a take-over (`admitHanded`). */
export type Forwarder = Pick<Upstream, 'forward'>

export interface AdmissionOptions {
  readonly clock: Clock
  readonly clients: ClientEndpoints
  readonly judge: Judge
  readonly upstream: Forwarder & Pick<Upstream, 'inFlight'>
  readonly responder: Responder
  readonly flows: ProxyFlows
  readonly unknown: Pick<UnknownClients, 'hold'>
  /** `unknown-clients.then`: refuses or forwards a query whose client is still unknown after the wait. */
  readonly onUnknown: 'refuse' | 'allow-unmanaged'
  /** Returns true once policy is loaded. */
  readonly isReady: () => boolean
  readonly denyResponse: keyof Denials
  /** The self-check sends queries to namegate itself, to test the proxy. Undefined if no self-check is configured. */
  readonly selfCheck?: SelfCheck | undefined
}

/** The endpoint number of queries that are forwarded although their client is unknown. No endpoint has this number. */
export const UNMANAGED = endpointId(0)
const NO_GENERATION = generation(0)

export class Admission {
  /** Counts queries by what the admission did with them. */
  readonly counters = {
    queries: 0,
    allowed: 0,
    denied: 0,
    /** Queries that policy denies and that were forwarded, because audit is on. */
    audited: 0,
    unknownClients: 0,
    /** Queries of unknown clients that were forwarded, because `unknown-clients.then` is `allow-unmanaged`. */
    unmanaged: 0,
    /** Queries that arrived on an interface on which packets of their endpoint cannot arrive. */
    interfaceMismatch: 0,
    notReady: 0,
    malformedQueries: 0,
    overloaded: 0,
    /** Queries over their client's bound that got no answer, because queries arrived faster than they were admitted. */
    passedOver: 0,
  }
  readonly #options: AdmissionOptions
  readonly #message = new MessageView()
  readonly #query = new QueryView()
  /** The query that is being admitted, in the form that ProxyFlows reads. */
  readonly #asked = {
    query: this.#query,
    batch: new MessageBatch({ capacity: 1, stride: 0 }),
    row: 0,
  }
  readonly #backlog: Backlog
  /** Receives allowed queries: the upstream, or the argument of `admitHanded` during that call. */
  #forwarder: Forwarder
  /** The local answer for a name that policy denies. Undefined: no answer. */
  readonly #denied: LocalAnswer | undefined
  /** The local answer for every name while policy sources are silent (`sources.then: deny`). Undefined: no answer. */
  readonly #closed: LocalAnswer | undefined

  constructor(options: AdmissionOptions) {
    this.#options = options
    this.#backlog = new Backlog(options.clock)
    this.#forwarder = options.upstream
    this.#denied = DENIED[options.denyResponse]
    this.#closed = CLOSED[options.denyResponse]
  }

  /** Admits queries from sockets. Each query is answered at once, is forwarded, or waits until its endpoint is known. */
  admit(batch: MessageBatch): void {
    this.counters.queries += batch.count
    batch.admittedAt = this.#options.clock.now()
    const isBehind = this.#backlog.isBehind(batch)
    for (let i = 0; i < batch.count; i++) {
      if (!isBehind || !this.#passOver(batch, i)) this.#admitOne(batch, i, false)
    }
  }

  /** Admits queries that have waited for their endpoint, and queries of namegate itself. None of them waits again. */
  admitWaited(batch: MessageBatch): void {
    batch.admittedAt = this.#options.clock.now()
    for (let i = 0; i < batch.count; i++) this.#admitOne(batch, i, true)
  }

  /** Admits queries that the source of a take-over received. `forwarder` receives the allowed queries. */
  admitHanded(batch: MessageBatch, forwarder: Forwarder): void {
    this.#forwarder = forwarder
    try {
      this.admit(batch)
    } finally {
      this.#forwarder = this.#options.upstream
    }
  }

  /** Skips a UDP query whose client has reached its bound of queries in flight. Returns true if the query was skipped. */
  #passOver(batch: MessageBatch, i: number): boolean {
    const { inFlight } = this.#options.upstream
    if (batch.transports[i] !== OVER_UDP || !inFlight.isClientFull(batch, i)) return false
    this.counters.passedOver++
    return true
  }

  #admitOne(batch: MessageBatch, i: number, hasWaited: boolean): void {
    const { responder, judge, clients, flows, selfCheck } = this.#options
    const query = this.#query
    const asked = this.#asked
    asked.batch = batch
    asked.row = i
    batch.labelEpochs[i] = 0
    const { octets, offset, length } = batch.view(i, this.#message)
    const status = query.read(octets, offset, length)
    if (status !== 'ok' || batch.oversized[i] === 1) return this.#refuseMalformed(batch, i, status)
    if (!this.#options.isReady()) {
      this.counters.notReady++
      return responder.refuse(batch, i, query, LOCAL.notReady)
    }
    if (selfCheck?.isOurs(query) === true) return selfCheck.take(batch, i)
    const endpoint = clients.of(batch, i)
    if (clients.asksListener(batch, i))
      return this.#deny(batch, i, endpoint?.id ?? UNMANAGED, SERVER_UNTRUSTED)
    if (endpoint === undefined) return this.#admitUnknown(batch, i, hasWaited)
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
    judge.noteLabels(batch, i)
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

  #refuseMalformed(batch: MessageBatch, i: number, status: QueryStatus): void {
    const { responder, clients, flows } = this.#options
    const query = this.#query
    this.counters.malformedQueries++
    const isCut = batch.oversized[i] === 1
    const endpoint = clients.of(batch, i)?.id ?? 0
    flows.refused('malformed', endpoint, this.#asked, isCut ? 'too long' : status)
    if (status === 'silent') responder.ignore(batch, i)
    else responder.refuse(batch, i, query, isCut ? LOCAL.queryMalformed : localAnswerTo(status))
  }

  /** Handles a query of an unknown client. The query waits once, because the endpoint often becomes known shortly after. */
  #admitUnknown(batch: MessageBatch, i: number, hasWaited: boolean): void {
    const { responder, unknown, onUnknown, flows, judge } = this.#options
    const held = hasWaited ? 'no-wait' : unknown.hold(batch, i)
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
}

/** One local answer per value of `dns.deny-response` (docs/spec/semantics 4, table). Undefined: no answer. */
type Denials = Readonly<Record<'refused' | 'nxdomain' | 'nodata' | 'drop', LocalAnswer | undefined>>

/** Local answers for a name that policy denies. */
const DENIED: Denials = {
  refused: LOCAL.deniedRefused,
  nxdomain: LOCAL.deniedNxdomain,
  nodata: LOCAL.deniedNodata,
  drop: undefined,
}

/** Local answers for every name while policy sources are silent and `sources.then` is `deny`. */
const CLOSED: Denials = {
  refused: LOCAL.closedRefused,
  nxdomain: LOCAL.closedNxdomain,
  nodata: LOCAL.closedNodata,
  drop: undefined,
}

/** The key under `limits` of the bound that the forwarder reported. */
const BOUNDS: Readonly<Record<ForwardResult, string>> = {
  forwarded: '',
  full: 'queries-in-flight',
  'client-full': 'queries-in-flight-per-client',
}

/** Returns the local answer for a query that cannot be read, or that asks for something namegate does not support. */
function localAnswerTo(status: Exclude<QueryStatus, 'silent'>): LocalAnswer {
  switch (status) {
    case 'notimp':
      return LOCAL.notImplemented
    case 'badvers':
      return LOCAL.badVersion
    case 'formerr':
    case 'ok':
      return LOCAL.queryMalformed
  }
}

/** Milliseconds of full batches after which queries are skipped: longer than a garbage collection, shorter than a client's timeout. */
const BEHIND_MS = 50
const NEVER = -1

/**
 * Detects that queries arrive faster than the pipeline admits them. Queries of all clients then wait behind each other in the
 * socket buffers, and the kernel drops queries when a buffer is full. The sign is an unbroken sequence of full batches. After
 * BEHIND_MS of full batches, the admission skips UDP queries of clients that have reached their bound of queries in flight. It
 * does not parse or answer a skipped query. So queries of other clients are answered in time. Without the skip, the query would
 * get SERVFAIL because of the bound. After the first batch that is not full, such queries get SERVFAIL again.
 */
export class Backlog {
  readonly #clock: Clock
  /** Time of the first batch in the present sequence of full batches; NEVER while batches are not full. */
  #fullSince = NEVER

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Notes if the next batch is full. Returns true if all batches have been full for more than BEHIND_MS. Call it once per batch. */
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
