// Datagrams that leave with the next flush, as rows in typed arrays that the addon reads. During a turn octets and
// peers are referred to where they lie (cells of queries in flight, of answers, of the batch), because nothing writes
// there before the flush; at any other time, and from any other memory, they are copied here.
// Cost: nine stores a row, no allocation.

import {
  AREA_ANSWERS,
  AREA_COPIES,
  AREA_IN_FLIGHT,
  CLIENTS_COPIES,
  CLIENTS_IN_FLIGHT,
  CLIENTS_QUERIES,
  NEWS_MAX,
  NEWS_WORDS,
  ROW_AREA,
  ROW_CLIENT,
  ROW_CLIENTS,
  ROW_HANDLE,
  ROW_ID,
  ROW_LENGTH,
  ROW_OFFSET,
  ROW_WORDS,
  ROWS_MAX,
} from '../../native/udp/udp.ts'
import { copyClient, ClientColumns } from './client-columns.ts'
import { copyOctets } from './octet-store.ts'

/** Octets of copies: eight of the longest, or a flush full of 512 each. */
const COPIES_OCTETS = 512 * 1024

export class SendRows {
  readonly rows = new Uint32Array(ROWS_MAX * ROW_WORDS)
  readonly news = new Int32Array(NEWS_MAX * NEWS_WORDS)
  readonly copies = new Uint8Array(COPIES_OCTETS)
  readonly clients = new ClientColumns(ROWS_MAX)
  /** Whether a turn is under way. */
  inTurn = false
  /** Memory that holds until the flush, during a turn. */
  answers: Uint8Array | undefined
  cells: Uint8Array | undefined
  inFlight: ClientColumns | undefined
  queries: ClientColumns | undefined
  #count = 0
  #used = 0

  /** Rows that wait. */
  get count(): number {
    return this.#count
  }

  /** Whether a row of so many octets can be added. */
  hasRoom(length: number): boolean {
    return this.#count < ROWS_MAX && this.#used + length <= COPIES_OCTETS
  }

  /** Adds a datagram of a connected socket; there must be room. */
  add(handle: number, octets: Uint8Array, offset: number, length: number, id: number): void {
    const { rows } = this
    const at = this.#count++ * ROW_WORDS
    let area = AREA_COPIES
    let from = offset
    if (this.inTurn && octets === this.cells) area = AREA_IN_FLIGHT
    else if (this.inTurn && octets === this.answers) area = AREA_ANSWERS
    else from = this.#copy(octets, offset, length)
    rows[at + ROW_HANDLE] = handle
    rows[at + ROW_AREA] = area
    rows[at + ROW_OFFSET] = from
    rows[at + ROW_LENGTH] = length
    rows[at + ROW_ID] = id
  }

  /** The peer of the row added last. */
  to(clients: ClientColumns, row: number): void {
    const { rows } = this
    const last = this.#count - 1
    const at = last * ROW_WORDS
    if (this.inTurn && clients === this.inFlight) {
      rows[at + ROW_CLIENTS] = CLIENTS_IN_FLIGHT
      rows[at + ROW_CLIENT] = row
    } else if (this.inTurn && clients === this.queries) {
      rows[at + ROW_CLIENTS] = CLIENTS_QUERIES
      rows[at + ROW_CLIENT] = row
    } else {
      copyClient(clients, row, this.clients, last)
      rows[at + ROW_CLIENTS] = CLIENTS_COPIES
      rows[at + ROW_CLIENT] = last
    }
  }

  clear(): void {
    this.#count = 0
    this.#used = 0
  }

  #copy(octets: Uint8Array, offset: number, length: number): number {
    const at = this.#used
    copyOctets(octets, offset, this.copies, at, length)
    this.#used = at + length
    return at
  }
}
