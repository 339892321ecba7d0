// Queries of clients that no endpoint is known for. Each waits for `unknown-clients.wait`: when endpoints change those
// whose client became known go on at once, in the order in which they came; the others go on when their time is
// over. Other queries do not wait for them. The pipeline adds queries, the daemon reports changes of endpoints.
// Bounded in number, per client and in all, and in octets; what is over a bound is refused. All wait equally long,
// so a ring in order of arrival and one timer do it. A query over TCP goes on counting for its connection.
// Memory: 512-octet cells, touched only as far as used (2 MiB at most). A look asks for each waiting query once,
// in parts of LOOK_PART a turn.

import type { Clock, Timer } from '../../core/clock.ts'
import type { Family } from '../../core/ip.ts'
import { MessageBatch } from '../messages/batch.ts'
import { ClientCounts } from '../messages/client-counts.ts'
import { copyClient, ClientColumns } from '../messages/client-columns.ts'
import { MessageView } from '../messages/message-view.ts'
import { copyOctets } from '../messages/octet-store.ts'

/** Queries that wait, in all and of one client address. */
export const WAITING_MAX = 4096
export const WAITING_PER_CLIENT_MAX = 64
/** Longest query that waits, in octets: every query without unusual EDNS options. */
export const WAITING_OCTETS_MAX = 512
/** Waiting queries looked at in one turn: some 0.5 ms. */
const LOOK_PART = 1024
/** End times are exact to this many milliseconds. */
const TICK_MS = 10

export interface UnknownClientsOptions {
  readonly clock: Clock
  /** `unknown-clients.wait`, in milliseconds. */
  readonly waitMs: number
  /** Octets of a cell of the batches handed on; at least WAITING_OCTETS_MAX. */
  readonly stride: number
  /** Whether the client of a row is a known endpoint by now. */
  readonly isKnown: (clients: ClientColumns, row: number) => boolean
  /** Queries whose wait is over, because their client is known or because time is up. */
  readonly onEnd: (batch: MessageBatch) => void
}

/** `no-wait`: the configuration lets no query wait. `full`: it would be over a bound, and is refused at once. */
export type HoldResult = 'held' | 'no-wait' | 'full'

export class UnknownClients {
  readonly counters = {
    /** Queries that waited; and those among them whose client became known in time. */
    held: 0,
    becameKnown: 0,
    timedOut: 0,
    /** Did not wait: too many in all, of that client, or too long. */
    refusedFull: 0,
    refusedClientFull: 0,
    refusedLong: 0,
  }
  readonly #options: UnknownClientsOptions
  readonly #clients = new ClientColumns(WAITING_MAX)
  readonly #cells = new Uint8Array(WAITING_MAX * WAITING_OCTETS_MAX)
  /** 0 for a row that is free. */
  readonly #lengths = new Uint16Array(WAITING_MAX)
  readonly #due = new Float64Array(WAITING_MAX)
  readonly #counts = new ClientCounts(WAITING_MAX)
  readonly #countEntries = new Int32Array(WAITING_MAX)
  readonly #message = new MessageView()
  #batch: MessageBatch | undefined
  /** Rows are numbers modulo WAITING_MAX, oldest first; free ones may lie between. */
  #oldest = 0
  #end = 0
  #waiting = 0
  /** Where the look under way goes on; `#end` when there is none. */
  #lookAt = 0
  #looking = false
  #timer: Timer | undefined
  readonly #runTimer = (): void => this.#endDue()
  readonly #runLook = (): void => this.#look()

  constructor(options: UnknownClientsOptions) {
    this.#options = options
  }

  /** Queries that wait now. */
  get waiting(): number {
    return this.#waiting
  }

  /** Takes entry `i` of a batch, a sound query, to wait. */
  hold(batch: MessageBatch, i: number): HoldResult {
    const { clock, waitMs } = this.#options
    if (waitMs === 0) return 'no-wait'
    const length = batch.length(i)
    if (length > WAITING_OCTETS_MAX) return this.#refused('refusedLong')
    if (this.#end - this.#oldest === WAITING_MAX) return this.#refused('refusedFull')
    const family: Family = batch.families[i] === 4 ? 4 : 6
    const entry = this.#counts.add(family, batch.addresses, i * 16, WAITING_PER_CLIENT_MAX)
    if (entry < 0) return this.#refused('refusedClientFull')
    const row = this.#end++ % WAITING_MAX
    copyClient(batch, i, this.#clients, row)
    copyOctets(batch.octets(i), batch.offset(i), this.#cells, row * WAITING_OCTETS_MAX, length)
    this.#lengths[row] = length
    this.#countEntries[row] = entry
    this.#due[row] = clock.now() + waitMs
    this.#waiting++
    this.counters.held++
    this.#timer ??= clock.after(waitMs, this.#runTimer)
    return 'held'
  }

  /** Endpoints changed: queries whose client is known now go on, in the turns that follow. */
  endpointsChanged(): void {
    this.#lookAt = this.#oldest
    if (this.#looking || this.#waiting === 0) return
    this.#looking = true
    this.#options.clock.soon(this.#runLook)
  }

  /** Gives all waiting queries to `to`, and holds none any more. */
  handOver(to: (batch: MessageBatch) => void): void {
    const batch = new MessageBatch({ stride: this.#options.stride })
    for (; this.#oldest < this.#end; this.#oldest++) {
      const row = this.#oldest % WAITING_MAX
      if (this.#lengths[row] === 0) continue
      this.#takeInto(batch, row)
      to(batch)
      batch.clear()
    }
    this.stop()
  }

  /** Nothing goes on any more. */
  stop(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    this.#lookAt = this.#end
    this.#oldest = this.#end
  }

  #look(): void {
    const { isKnown, clock } = this.#options
    const batch = (this.#batch ??= new MessageBatch({ stride: this.#options.stride }))
    const until = Math.min(this.#end, this.#lookAt + LOOK_PART)
    for (; this.#lookAt < until && !batch.full; this.#lookAt++) {
      const row = this.#lookAt % WAITING_MAX
      if (this.#lengths[row] === 0 || !isKnown(this.#clients, row)) continue
      this.counters.becameKnown++
      this.#takeInto(batch, row)
    }
    this.#handOn(batch)
    this.#looking = this.#lookAt < this.#end
    if (this.#looking) clock.soon(this.#runLook)
  }

  #endDue(): void {
    const { clock } = this.#options
    const batch = (this.#batch ??= new MessageBatch({ stride: this.#options.stride }))
    const now = clock.now()
    this.#timer = undefined
    for (; this.#oldest < this.#end && !batch.full; this.#oldest++) {
      const row = this.#oldest % WAITING_MAX
      if (this.#lengths[row] === 0) continue
      if (this.#due[row]! > now) break
      this.counters.timedOut++
      this.#takeInto(batch, row)
    }
    this.#lookAt = Math.max(this.#lookAt, this.#oldest)
    if (this.#oldest < this.#end) {
      const wait = this.#due[this.#oldest % WAITING_MAX]! - now
      this.#timer = clock.after(batch.full ? 0 : Math.max(wait, TICK_MS), this.#runTimer)
    }
    this.#handOn(batch)
  }

  /** Moves a row's query to the batch, which must not be full. */
  #takeInto(batch: MessageBatch, row: number): void {
    const { addresses, ports } = this.#clients
    const at = row * WAITING_OCTETS_MAX
    const family: Family = this.#clients.families[row] === 4 ? 4 : 6
    const index = batch.count
    const message = this.#message.set(this.#cells, at, this.#lengths[row]!)
    batch.addTcp(0, family, addresses, ports[row]!, message)
    copyClient(this.#clients, row, batch, index)
    this.#counts.remove(this.#countEntries[row]!)
    this.#lengths[row] = 0
    this.#waiting--
  }

  #handOn(batch: MessageBatch): void {
    if (batch.count === 0) return
    try {
      this.#options.onEnd(batch)
    } finally {
      batch.clear()
    }
  }

  #refused(counter: 'refusedFull' | 'refusedClientFull' | 'refusedLong'): 'full' {
    this.counters[counter]++
    return 'full'
  }
}
