// Whether a message that came from an upstream can be the reply to a query in flight (F1): the cheap test
// before anything else of the message is read. Address, port and id were compared by the caller.

import { FLAG_QR, MASK_OPCODE, MASK_RCODE, RCODE_NOERROR, RCODE_NXDOMAIN } from './codes.ts'
import type { Question } from './query.ts'
import { HEADER_OCTETS, LOWER, u16 } from './wire.ts'

/**
 * True for a reply (QR=1, opcode QUERY) whose only question is octet for octet that of the query at `queryAt`, which ends
 * `questionEnd` octets from the query's start. Nearly every answer is one; any other is left to `questionEquals`.
 */
export function questionEchoes(
  buf: Uint8Array,
  offset: number,
  length: number,
  query: Uint8Array,
  queryAt: number,
  questionEnd: number,
): boolean {
  if (length < questionEnd) return false
  if ((u16(buf, offset + 2) & (FLAG_QR | MASK_OPCODE)) !== FLAG_QR) return false
  if (u16(buf, offset + 4) !== 1) return false
  for (let i = HEADER_OCTETS; i < questionEnd; i++) {
    if (buf[offset + i] !== query[queryAt + i]) return false
  }
  return true
}

/**
 * True for a reply (QR=1, opcode QUERY) with exactly the question asked, labels compared without case; and for
 * one without a question whose header RCODE is neither NOERROR nor NXDOMAIN (Q3), which passes and teaches
 * nothing. An error that only OPT tells (BADVERS) needs its question.
 */
export function questionEquals(
  buf: Uint8Array,
  offset: number,
  length: number,
  question: Question,
): boolean {
  if (length < HEADER_OCTETS) return false
  const flags = u16(buf, offset + 2)
  if ((flags & (FLAG_QR | MASK_OPCODE)) !== FLAG_QR) return false
  const questions = u16(buf, offset + 4)
  if (questions === 0) {
    const rcode = flags & MASK_RCODE
    return rcode !== RCODE_NOERROR && rcode !== RCODE_NXDOMAIN
  }
  const size = question.nameLength
  if (questions !== 1 || length < HEADER_OCTETS + size + 4) return false
  const at = offset + HEADER_OCTETS
  // Label lengths are below 64, so lowering leaves them alone and a pointer never equals one.
  const name = question.name
  for (let i = 0; i < size; i++) if (LOWER[buf[at + i]!]! !== name[i]!) return false
  return u16(buf, at + size) === question.qtype && u16(buf, at + size + 2) === question.qclass
}
