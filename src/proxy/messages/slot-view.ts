// The query of one slot in flight as the dns functions want to see it: a question to compare an answer
// with, and what a local answer repeats. One object is used again for every slot; `read` fills it. No allocation.

import { questionEchoes, questionEquals } from '../../dns/match.ts'
import type { HashedQuestion } from '../../dns/query.ts'
import type { AnsweredQuery } from '../../dns/reply.ts'
import { HEADER_OCTETS, LOWER, u16 } from '../../dns/wire.ts'
import type { InFlightTable } from './in-flight.ts'

/** Type and class behind the name (RFC 1035 4.1.2). */
const QUESTION_FIXED_OCTETS = 4

export class SlotView implements HashedQuestion, AnsweredQuery {
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

  /** Whether a message is the reply to the query of a taken slot (docs/spec/semantics 4); reads the slot if it must. */
  isReply(
    table: InFlightTable,
    slot: number,
    octets: Uint8Array,
    offset: number,
    length: number,
  ): boolean {
    const end = table.questionEnds[slot]!
    if (questionEchoes(octets, offset, length, table.octets(slot), table.offset(slot), end)) {
      return true
    }
    this.read(table, slot)
    return questionEquals(octets, offset, length, this)
  }

  /** Reads a taken slot. Only sound queries are forwarded, so the name stands uncompressed behind the header. */
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
    this.nameLength = this.questionEnd - HEADER_OCTETS - QUESTION_FIXED_OCTETS
    const at = start + HEADER_OCTETS
    for (let i = 0; i < this.nameLength; i++) this.name[i] = LOWER[octets[at + i]!]!
  }
}
