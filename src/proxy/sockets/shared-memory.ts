// The memory that the addon's sockets and the packet path both write: cells and columns, each made known to the
// engine once. Answers have cells of their own, so that none is copied before the pipeline has read it.

import {
  AREA_ANSWERS,
  AREA_COPIES,
  AREA_IN_FLIGHT,
  AREA_QUERIES,
  CLIENTS_COPIES,
  CLIENTS_IN_FLIGHT,
  CLIENTS_QUERIES,
  type UdpAddon,
  type UdpClientColumns,
} from '../../native/udp/udp.ts'
import { ANSWERS_CAPACITY } from '../messages/answer-batch.ts'
import type { MessageBatch } from '../messages/batch.ts'
import type { ClientColumns } from '../messages/client-columns.ts'
import type { InFlightTable } from '../messages/in-flight.ts'
import type { SendRows } from '../messages/send-rows.ts'

/** An answer of any length fits; only pages that are used take memory. */
export const ANSWER_OCTETS = 65_536
/** From one cell to the next; the odd line spreads cells over a processor's cache. */
export const ANSWER_STRIDE = ANSWER_OCTETS + 64

/** What the addon received from servers, by entry. */
export class AnswerCells {
  readonly slab = new Uint8Array(ANSWERS_CAPACITY * ANSWER_STRIDE)
  readonly handles = new Uint32Array(ANSWERS_CAPACITY)
  readonly offsets = new Uint32Array(ANSWERS_CAPACITY)
  readonly lengths = new Uint32Array(ANSWERS_CAPACITY)
}

export function shareAnswers(addon: UdpAddon, engine: object, cells: AnswerCells): void {
  addon.shareArea(engine, AREA_ANSWERS, [cells.slab])
  addon.shareAnswers(engine, 0, [cells.handles, cells.offsets, cells.lengths])
}

export function shareSends(addon: UdpAddon, engine: object, sends: SendRows): void {
  addon.shareArea(engine, AREA_COPIES, [sends.copies])
  addon.shareClients(engine, CLIENTS_COPIES, columnsOf(sends.clients))
  addon.shareSends(engine, 0, [sends.rows, sends.news])
}

export function shareQueries(addon: UdpAddon, engine: object, batch: MessageBatch): void {
  const { slab, offsets, lengths } = batch.store
  addon.shareArea(engine, AREA_QUERIES, [slab])
  addon.shareClients(engine, CLIENTS_QUERIES, columnsOf(batch))
  addon.shareQueries(engine, 0, [offsets, lengths, batch.oversized])
}

/** The octets of queries in flight; nothing may be in flight yet. */
export function shareInFlight(addon: UdpAddon, engine: object, table: InFlightTable): Uint8Array {
  // Of an empty table every slot is in the cells; only very long queries will lie elsewhere.
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
