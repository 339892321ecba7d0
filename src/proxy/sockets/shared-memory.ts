// This file holds the memory that the addon and TypeScript share: cells of octets, and columns. The addon gets each array once.
// The addon writes answers into cells of AnswerCells, so no answer is copied before the pipeline has read it.

import {
  AREA_ANSWERS,
  AREA_COPIES,
  AREA_IN_FLIGHT,
  AREA_QUERIES,
  CLIENTS_COPIES,
  CLIENTS_IN_FLIGHT,
  CLIENTS_QUERIES,
  REPORTS_MAX,
  REPORT_WORDS,
  ROW_AREA,
  ROW_CLIENT,
  ROW_CLIENTS,
  ROW_HANDLE,
  ROW_ID,
  ROW_LENGTH,
  ROW_OFFSET,
  ROW_WORDS,
  ROWS_MAX,
  type UdpAddon,
  type UdpClientColumns,
} from '../../native/udp/udp.ts'
import { ANSWERS_CAPACITY } from '../messages/answer-batch.ts'
import type { MessageBatch } from '../messages/batch.ts'
import { copyClient, ClientColumns } from '../messages/client-columns.ts'
import type { InFlightTable } from '../messages/in-flight.ts'
import { copyOctets } from '../messages/octet-store.ts'

/** Octets of a cell. An answer of any length fits. Only used pages take memory. */
export const ANSWER_OCTETS = 65_536
/** Octets from one cell to the next. The extra 64 octets spread the cells over the processor's cache. */
export const ANSWER_STRIDE = ANSWER_OCTETS + 64

/** Answers that the addon received from servers: handle of the socket, offset and length. */
export class AnswerCells {
  readonly slab = new Uint8Array(ANSWERS_CAPACITY * ANSWER_STRIDE)
  readonly handles = new Uint32Array(ANSWERS_CAPACITY)
  readonly offsets = new Uint32Array(ANSWERS_CAPACITY)
  readonly lengths = new Uint32Array(ANSWERS_CAPACITY)
}

/** Octets for copies: eight of the longest datagrams, or 512 octets for every row of a full flush. */
const COPIES_OCTETS = 512 * 1024

/**
 * SendRows holds the datagrams that the next flush sends, as rows for the addon. During a turn, a row refers to octets and peers in
 * the in-flight table, in AnswerCells or in the batch, because this memory does not change before the flush. At other times, and
 * from other memory, octets and peers are copied. Cost: nine stores per row, no allocation.
 */
export class SendRows {
  readonly rows = new Uint32Array(ROWS_MAX * ROW_WORDS)
  readonly reports = new Int32Array(REPORTS_MAX * REPORT_WORDS)
  readonly copies = new Uint8Array(COPIES_OCTETS)
  readonly clients = new ClientColumns(ROWS_MAX)
  /** True during a turn. */
  inTurn = false
  /** Memory that stays unchanged until the flush, during a turn. */
  answers: Uint8Array | undefined
  cells: Uint8Array | undefined
  inFlight: ClientColumns | undefined
  queries: ClientColumns | undefined
  /** The number of rows. */
  count = 0
  #used = 0

  /** Returns true if a row of `length` octets can be added. */
  hasRoom(length: number): boolean {
    return this.count < ROWS_MAX && this.#used + length <= COPIES_OCTETS
  }

  /** Adds a datagram. There must be room. On a socket that is not connected, a call of `to` must follow. */
  add(handle: number, octets: Uint8Array, offset: number, length: number, id: number): void {
    const { rows } = this
    const at = this.count++ * ROW_WORDS
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

  /** Sets the peer of the last added row. */
  to(clients: ClientColumns, row: number): void {
    const { rows } = this
    const last = this.count - 1
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
    this.count = 0
    this.#used = 0
  }

  #copy(octets: Uint8Array, offset: number, length: number): number {
    const at = this.#used
    copyOctets(octets, offset, this.copies, at, length)
    this.#used = at + length
    return at
  }
}

export function shareAnswers(addon: UdpAddon, engine: object, cells: AnswerCells): void {
  addon.shareArea(engine, AREA_ANSWERS, [cells.slab])
  addon.shareAnswers(engine, 0, [cells.handles, cells.offsets, cells.lengths])
}

export function shareSends(addon: UdpAddon, engine: object, sends: SendRows): void {
  addon.shareArea(engine, AREA_COPIES, [sends.copies])
  addon.shareClients(engine, CLIENTS_COPIES, columnsOf(sends.clients))
  addon.shareSends(engine, 0, [sends.rows, sends.reports])
}

export function shareQueries(addon: UdpAddon, engine: object, batch: MessageBatch): void {
  const { slab, offsets, lengths } = batch.store
  addon.shareArea(engine, AREA_QUERIES, [slab])
  addon.shareClients(engine, CLIENTS_QUERIES, columnsOf(batch))
  addon.shareQueries(engine, 0, [offsets, lengths, batch.oversized])
}

/** Shares the cells of the in-flight table with the addon, and returns them. No query must be in flight yet. */
export function shareInFlight(addon: UdpAddon, engine: object, table: InFlightTable): Uint8Array {
  // In an empty table, `octets` of every slot is the array of cells. Only long queries get another array later.
  const cells = table.octets(0)
  addon.shareArea(engine, AREA_IN_FLIGHT, [cells])
  addon.shareClients(engine, CLIENTS_IN_FLIGHT, columnsOf(table))
  return cells
}

function columnsOf(clients: ClientColumns): UdpClientColumns {
  return [
    clients.families,
    clients.addresses,
    clients.ports,
    clients.transports,
    clients.channels,
    clients.interfaces,
    clients.askedAddresses,
    clients.askedPorts,
  ]
}
