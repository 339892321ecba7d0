// `dns.prewarm`: Prewarm asks for the exact names of policies before any workload asks. So if a workload already knows an address
// of such a name, its first packet can pass. For each endpoint with `matchName` in its policy, Prewarm asks as if the
// endpoint asked. The pipeline handles the question like a query of this endpoint: verdict, forwarding, learning into the
// endpoint's entries, commit. The answer is not sent to any socket (OF_OURS). Prewarm asks for A, AAAA or both, by the address
// families of the endpoint.
//
// Prewarm asks again when a tenth of the answer's TTL is left, as long as the name is in the endpoint's policy. If an answer
// has no address, the wait before the next try doubles each time. Prewarm sends at most PER_TICK queries per tick, and keeps at
// most PREWARM_MAX questions (endpoint, name, type). `original-destination` turns Prewarm off, because then clients choose the server.

import type { Clock, Timer } from '../core/clock.ts'
import type { EndpointId } from '../core/ids.ts'
import { parseName } from '../core/name.ts'
import { AnswerView } from '../dns/answer.ts'
import { OWN_UDP_SIZE, TYPE_A, TYPE_AAAA, TYPE_OPT } from '../dns/codes.ts'
import type { Question } from '../dns/query.ts'
import type { Endpoint } from '../endpoints/registry.ts'
import type { CompiledPolicy } from '../policy/compile/compile.ts'
import { MessageBatch } from './messages/batch.ts'
import { MessageView } from '../dns/message-view.ts'
import { OF_OURS } from './messages/client-columns.ts'

/** The largest number of questions. It is less than the number of ids. */
export const PREWARM_MAX = 16_384
const TICK_MS = 100
/** The largest number of queries per tick: 100 queries per second in total. */
const PER_TICK = 10
/** The shortest time before a name is asked again, in milliseconds, even if the TTL is shorter. */
const AGAIN_MIN_MS = 5_000
const AGAIN_MAX_MS = 3_600_000
/** The wait after the first try without an address, in milliseconds. It doubles after each further try, up to RETRY_MAX_MS. */
const RETRY_MS = 1_000
const RETRY_MAX_MS = 300_000
/** The fraction of the TTL after which a question is asked again. */
const AGAIN_SHARE = 0.9
const QUERY_MAX = 320
const FLAG_RD_OCTET = 1

export interface PrewarmOptions {
  readonly clock: Clock
  readonly endpoints: Iterable<Endpoint>
  /** Returns the exact names in the policy of an endpoint, as text. */
  readonly namesOf: (endpoint: EndpointId) => Iterable<string>
  /** Receives the queries of one tick. */
  readonly onBatch: (batch: MessageBatch) => void
}

interface Wanted {
  readonly key: string
  readonly endpoint: EndpointId
  readonly name: Uint8Array
  readonly qtype: number
  due: number
  /** True while the question waits for its answer. */
  asked: boolean
  failures: number
}

export class Prewarm {
  readonly counters = {
    asked: 0,
    /** Answers with an address. */
    answered: 0,
    /** Questions that were refused, failed, or got an answer without an address. */
    unanswered: 0,
    /** Questions for which there was no room when the policies were last read. */
    leftOut: 0,
  }
  readonly #options: PrewarmOptions
  /** The questions by query id. */
  readonly #wanted: (Wanted | undefined)[] = []
  readonly #ids = new Map<string, number>()
  readonly #view = new AnswerView()
  readonly #batch = new MessageBatch({ capacity: PER_TICK, stride: 512 })
  readonly #query = new Uint8Array(QUERY_MAX)
  readonly #message = new MessageView()
  #timer: Timer | undefined
  #stale = true
  #next = 0

  constructor(options: PrewarmOptions) {
    this.#options = options
  }

  /** The number of questions. */
  get size(): number {
    return this.#ids.size
  }

  start(): void {
    this.#timer = this.#options.clock.every(TICK_MS, () => this.#tick())
  }

  stop(): void {
    this.#timer?.cancel()
  }

  /** Call it when policies or endpoints changed. The next tick reads them again. */
  changed(): void {
    this.#stale = true
  }

  /** Handles the answer to the question with this id, and sets the time of the next query. */
  answered(id: number, question: Question, { octets, offset, length }: MessageView): void {
    const view = this.#view
    const status = view.read(octets, offset, length, question)
    const wanted = this.#wanted[id]
    if (status === 'malformed' || view.count === 0) return this.unanswered(id)
    this.counters.answered++
    if (wanted === undefined) return
    let ttl = Infinity
    for (let i = 0; i < view.count; i++) ttl = Math.min(ttl, view.ttls[i]!)
    const wait = Math.min(Math.max(ttl * 1000 * AGAIN_SHARE, AGAIN_MIN_MS), AGAIN_MAX_MS)
    wanted.asked = false
    wanted.failures = 0
    wanted.due = this.#options.clock.now() + wait
  }

  /** Handles a question that got no answer with an address, and sets the time of the next try. */
  unanswered(id: number): void {
    this.counters.unanswered++
    const wanted = this.#wanted[id]
    if (wanted === undefined) return
    wanted.asked = false
    const wait = Math.min(RETRY_MS * 2 ** wanted.failures++, RETRY_MAX_MS)
    wanted.due = this.#options.clock.now() + wait
  }

  #tick(): void {
    if (this.#stale) this.#refresh()
    const now = this.#options.clock.now()
    const batch = this.#batch
    for (let looked = 0; looked < this.#wanted.length && !batch.full; looked++) {
      const id = this.#next++ % this.#wanted.length
      const wanted = this.#wanted[id]
      if (wanted === undefined || wanted.asked || wanted.due > now) continue
      wanted.asked = true
      this.#ask(id, wanted)
    }
    if (batch.count === 0) return
    try {
      this.#options.onBatch(batch)
    } finally {
      batch.clear()
    }
  }

  #ask(id: number, { endpoint, name, qtype }: Wanted): void {
    this.counters.asked++
    const index = this.#batch.count
    const length = writeQuery(this.#query, id, name, qtype)
    this.#batch.addTcp(endpoint, 4, NOBODY, 0, this.#message.set(this.#query, 0, length))
    this.#batch.transports[index] = OF_OURS
  }

  /** Reads the questions from policies and endpoints. Questions that stay keep their times. Ids are reused only after all were used. */
  #refresh(): void {
    this.#stale = false
    this.counters.leftOut = 0
    const keep = new Set<string>()
    for (const endpoint of this.#options.endpoints) {
      for (const text of this.#options.namesOf(endpoint.id)) {
        for (const qtype of typesOf(endpoint)) {
          const key = `${endpoint.id} ${qtype} ${text}`
          if (this.#ids.has(key) || this.#add(key, endpoint.id, text, qtype)) keep.add(key)
        }
      }
    }
    for (const [key, id] of this.#ids) {
      if (keep.has(key)) continue
      this.#ids.delete(key)
      this.#wanted[id] = undefined
    }
  }

  #add(key: string, endpoint: EndpointId, text: string, qtype: number): boolean {
    const parsed = parseName(text)
    if (parsed.kind !== 'ok') return false
    if (this.#ids.size >= PREWARM_MAX) {
      this.counters.leftOut++
      return false
    }
    let id = this.#wanted.length < PREWARM_MAX ? -1 : this.#wanted.indexOf(undefined)
    if (id < 0) id = this.#wanted.length
    const due = this.#options.clock.now()
    this.#wanted[id] = { key, endpoint, name: parsed.name, qtype, due, asked: false, failures: 0 }
    this.#ids.set(key, id)
    return true
  }
}

/** Returns the names of `matchName` peers, and of patterns that match exactly one name. */
export function exactNames(compiled: CompiledPolicy | undefined): readonly string[] {
  return (compiled?.selectors ?? []).flatMap(({ spec }) =>
    spec.kind === 'fqdn' && spec.pattern.kind === 'exact' ? [spec.pattern.text] : [],
  )
}

const NOBODY = new Uint8Array(16)

/** Returns the query types for the families of the endpoint's addresses; both types if the endpoint has no address. */
function typesOf({ addresses }: Endpoint): readonly number[] {
  const types = [
    ...(addresses.some(({ family }) => family === 4) ? [TYPE_A] : []),
    ...(addresses.some(({ family }) => family === 6) ? [TYPE_AAAA] : []),
  ]
  return types.length === 0 ? [TYPE_A, TYPE_AAAA] : types
}

/** Writes a query with RD for one name in class IN, with an OPT record without options. Returns its length in octets. */
function writeQuery(into: Uint8Array, id: number, name: Uint8Array, qtype: number): number {
  into.fill(0)
  into[0] = id >> 8
  into[1] = id & 0xff
  into[2] = FLAG_RD_OCTET
  into[5] = 1
  into[11] = 1
  into.set(name, 12)
  let at = 12 + name.length
  into[at + 1] = qtype
  into[at + 3] = 1
  at += 4
  into[at + 2] = TYPE_OPT
  into[at + 3] = OWN_UDP_SIZE >> 8
  into[at + 4] = OWN_UDP_SIZE & 0xff
  return at + 11
}
