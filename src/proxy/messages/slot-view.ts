// SlotView reads the query of one slot into the fields that the functions of src/dns need. They compare the question with an answer,
// and repeat parts of the query in a local answer. `read` reuses the same object for every slot, so it allocates nothing.

import { questionEchoes, questionEquals } from '../../dns/match.ts'
import { MessageView } from '../../dns/message-view.ts'
import type { HashedQuestion } from '../../dns/query.ts'
import type { AnsweredQuery } from '../../dns/reply.ts'
import { HEADER_OCTETS, LOWER, u16 } from '../../dns/wire.ts'
import type { AskedLabels } from '../../names/tables/name-table.ts'
import type { InFlightTable } from './in-flight.ts'

/** Octets of type and class after the name (RFC 1035 4.1.2). */
const QUESTION_FIXED_OCTETS = 4

export class SlotView implements HashedQuestion, AnsweredQuery, AskedLabels {
  readonly name = new Uint8Array(255)
  nameLength = 0
  nameHash = 0
  qtype = 0
  qclass = 0
  /** The client's own id. */
  id = 0
  flags = 0
  questionEnd = 0
  hasOpt = false
  dnssecOk = false
  labels = 0
  labelEpoch = 0
  readonly #query = new MessageView()

  /**
   * Returns true if a message is the reply to the query of a taken slot (docs/spec/semantics 4). If its question has another letter case,
   * `accept` writes the client's question over it (A15). `accept` can overwrite the fields.
   */
  accept(table: InFlightTable, slot: number, message: MessageView): boolean {
    const query = table.view(slot, this.#query)
    const questionEnd = table.questionEnds[slot]!
    if (questionEchoes(message, query, questionEnd)) return true
    this.read(table, slot)
    if (!questionEquals(message, this)) return false
    restoreCase(message, query, questionEnd)
    return true
  }

  /** Reads a taken slot. Only well-formed queries are forwarded, so the name follows the header and is not compressed. */
  read(table: InFlightTable, slot: number): void {
    const octets = table.octets(slot)
    const start = table.offset(slot)
    this.id = table.clientIds[slot]!
    this.flags = u16(octets, start + 2)
    this.questionEnd = table.questionEnds[slot]!
    this.hasOpt = table.hasOpts[slot] === 1
    this.dnssecOk = table.dnssecOks[slot] === 1
    this.qtype = table.qtypes[slot]!
    this.qclass = table.qclasses[slot]!
    this.nameHash = table.nameHash(slot)
    this.labels = table.labels[slot]!
    this.labelEpoch = table.labelEpochs[slot]!
    this.nameLength = this.questionEnd - HEADER_OCTETS - QUESTION_FIXED_OCTETS
    const at = start + HEADER_OCTETS
    for (let i = 0; i < this.nameLength; i++) this.name[i] = LOWER[octets[at + i]!]!
  }
}

/**
 * Writes the question of `query` over the question of its reply. The names are equal except for case, so each octet keeps its place, and
 * a compressed name in the records shows the client's case too. A reply without question stays as it is.
 */
function restoreCase(reply: MessageView, query: MessageView, questionEnd: number): void {
  const { octets, offset } = reply
  if (u16(octets, offset + 4) === 0) return
  for (let i = HEADER_OCTETS; i < questionEnd; i++)
    octets[offset + i] = query.octets[query.offset + i]!
}
