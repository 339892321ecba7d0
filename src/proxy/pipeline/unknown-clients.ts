// UnknownClients keeps the queries of clients that are no known endpoint. Each query waits up to `unknown-clients.wait`. When
// the daemon reports changed endpoints, the queries whose client became known are handed on, in order of arrival. A query whose
// time is over is handed on as well. Queries of known clients do not wait.
//
// The number of waiting queries is bounded, in total and per client, and so is the length of a query. A query over a bound is
// refused. All queries wait equally long, so a ring in order of arrival and one timer suffice. A waiting query over TCP still
// counts as a query of its connection. Memory: one cell of 512 octets per query, 2 MiB at most, and only used pages take memory.
// After a change of endpoints, each waiting query is checked once, at most LOOK_PART queries per turn.

import type { Clock, Timer } from '../../core/clock.ts'
import type { Family } from '../../core/ip.ts'
import { Histogram } from '../../core/tables/histogram.ts'
import { MessageBatch } from '../messages/batch.ts'
import { ClientCounts } from '../messages/client-counts.ts'
import { copyClient, ClientColumns } from '../messages/client-columns.ts'
import { MessageView } from '../../dns/message-view.ts'
import { copyOctets } from '../messages/octet-store.ts'

/** The largest number of waiting queries. */
export const WAITING_MAX = 4096
/** The largest number of waiting queries of one client address. */
export const WAITING_PER_CLIENT_MAX = 64
/** The longest query that can wait, in octets. Only queries with unusual EDNS options are longer. */
export const WAITING_OCTETS_MAX = 512
/** The number of waiting queries that are checked in one turn, which takes about 0.5 ms. */
const LOOK_PART = 1024
/** Precision of the end of a wait, in milliseconds. */
const TICK_MS = 10

export interface UnknownClientsOptions {
  readonly clock: Clock
  /** `unknown-clients.wait`, in milliseconds. */
  readonly waitMs: number
  /** Octets per message in the batches for `onEnd`; at least WAITING_OCTETS_MAX. */
  readonly stride: number
  /** Returns true if the client of a row is a known endpoint. */
  readonly isKnown: (clients: ClientColumns, row: number) => boolean
  /** Receives the queries whose client became known or whose time is over. */
  readonly onEnd: (batch: MessageBatch) => void
}

/** `held`: the query waits. `no-wait`: `unknown-clients.wait` is 0. `full`: a bound is reached, and the query must be refused. */
export type HoldResult = 'held' | 'no-wait' | 'full'

export class UnknownClients {
  readonly counters = {
    /** Queries that waited. */
    held: 0,
    /** Waiting queries whose client became known in time. */
    becameKnown: 0,
    timedOut: 0,
    /** Queries that could not wait, because WAITING_MAX queries waited. */
    refusedFull: 0,
    /** Queries that could not wait, because WAITING_PER_CLIENT_MAX queries of their client waited. */
    refusedClientFull: 0,
    /** Queries that could not wait, because they were longer than WAITING_OCTETS_MAX. */
    refusedLong: 0,
  }
  /** How long queries waited, in milliseconds. */
  readonly times = new Histogram()
  readonly #options: UnknownClientsOptions
  readonly #clients = new ClientColumns(WAITING_MAX)
  readonly #cells = new Uint8Array(WAITING_MAX * WAITING_OCTETS_MAX)
  /** Length of the query in each row, in octets; 0: the row is free. */
  readonly #lengths = new Uint16Array(WAITING_MAX)
  readonly #due = new Float64Array(WAITING_MAX)
  readonly #counts = new ClientCounts(WAITING_MAX)
  readonly #countEntries = new Int32Array(WAITING_MAX)
  readonly #message = new MessageView()
  #batch: MessageBatch | undefined
  /** The ring: numbers from `#oldest` to below `#end`, in order of arrival. A number modulo WAITING_MAX is a row. Some rows can be free. */
  #oldest = 0
  #end = 0
  #waiting = 0
  /** The number at which the check of waiting queries continues; `#end` if no check is in progress. */
  #lookAt = 0
  #looking = false
  #timer: Timer | undefined
  readonly #runTimer = (): void => this.#endDue()
  readonly #runLook = (): void => this.#look()

  constructor(options: UnknownClientsOptions) {
    this.#options = options
  }

  /** The number of waiting queries. */
  get waiting(): number {
    return this.#waiting
  }

  /** Lets query `i` of a batch wait. The query must be well-formed. */
  hold(batch: MessageBatch, i: number): HoldResult {
    const { clock, waitMs } = this.#options
    if (waitMs === 0) return 'no-wait'
    const { octets, offset, length } = batch.view(i, this.#message)
    if (length > WAITING_OCTETS_MAX) return this.#refused('refusedLong')
    if (this.#end - this.#oldest === WAITING_MAX) return this.#refused('refusedFull')
    const family: Family = batch.families[i] === 4 ? 4 : 6
    const entry = this.#counts.add(family, batch.addresses, i * 16, WAITING_PER_CLIENT_MAX)
    if (entry < 0) return this.#refused('refusedClientFull')
    const row = this.#end++ % WAITING_MAX
    copyClient(batch, i, this.#clients, row)
    copyOctets(octets, offset, this.#cells, row * WAITING_OCTETS_MAX, length)
    this.#lengths[row] = length
    this.#countEntries[row] = entry
    this.#due[row] = clock.now() + waitMs
    this.#waiting++
    this.counters.held++
    this.#timer ??= clock.after(waitMs, this.#runTimer)
    return 'held'
  }

  /** Call it when endpoints changed. It hands on the queries whose client became known, in the next turns. */
  endpointsChanged(): void {
    this.#lookAt = this.#oldest
    if (this.#looking || this.#waiting === 0) return
    this.#looking = true
    this.#options.clock.soon(this.#runLook)
  }

  /** Gives all waiting queries to `to`, then stops. */
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

  /** Drops the queries that wait. */
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

  /** Moves a row's query to the batch. The batch must have room. */
  #takeInto(batch: MessageBatch, row: number): void {
    const { addresses, ports } = this.#clients
    const { clock, waitMs } = this.#options
    const at = row * WAITING_OCTETS_MAX
    const family: Family = this.#clients.families[row] === 4 ? 4 : 6
    const index = batch.count
    const message = this.#message.set(this.#cells, at, this.#lengths[row]!)
    batch.addTcp(0, family, addresses, ports[row]!, message)
    copyClient(this.#clients, row, batch, index)
    this.times.add(clock.now() - (this.#due[row]! - waitMs))
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
