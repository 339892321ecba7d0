// These functions check if a message from an upstream can be the reply to a query in flight (F1). They are cheap, and are called
// before the rest of the message is read. The caller has compared address, port and id.

import { FLAG_QR, MASK_OPCODE, MASK_RCODE, RCODE_NOERROR, RCODE_NXDOMAIN } from './codes.ts'
import type { MessageView } from './message-view.ts'
import type { Question } from './query.ts'
import { HEADER_OCTETS, LOWER, u16 } from './wire.ts'

/**
 * Returns true for a reply (QR=1, opcode QUERY) whose only question has the same octets as the question of `query`. This question
 * ends `questionEnd` octets after the start of the query. It is true for nearly every answer; for others, use `questionEquals`.
 */
export function questionEchoes(
  message: MessageView,
  query: MessageView,
  questionEnd: number,
): boolean {
  const { octets, offset } = message
  if (message.length < questionEnd) return false
  if ((u16(octets, offset + 2) & (FLAG_QR | MASK_OPCODE)) !== FLAG_QR) return false
  if (u16(octets, offset + 4) !== 1) return false
  for (let i = HEADER_OCTETS; i < questionEnd; i++) {
    if (octets[offset + i] !== query.octets[query.offset + i]) return false
  }
  return true
}

/**
 * Returns true for a reply (QR=1, opcode QUERY) with exactly the asked question, DNS labels compared without case. Also returns true
 * for a reply without a question, if the RCODE in its header is an error other than NXDOMAIN (Q3). Such a reply passes, and nothing is
 * learned from it. A reply whose error is only in OPT (BADVERS) needs the question.
 */
export function questionEquals(message: MessageView, question: Question): boolean {
  const { octets, offset, length } = message
  if (length < HEADER_OCTETS) return false
  const flags = u16(octets, offset + 2)
  if ((flags & (FLAG_QR | MASK_OPCODE)) !== FLAG_QR) return false
  const questions = u16(octets, offset + 4)
  if (questions === 0) {
    const rcode = flags & MASK_RCODE
    return rcode !== RCODE_NOERROR && rcode !== RCODE_NXDOMAIN
  }
  const size = question.nameLength
  if (questions !== 1 || length < HEADER_OCTETS + size + 4) return false
  const at = offset + HEADER_OCTETS
  // The length octet of a DNS label is below 64, so LOWER does not change it, and it never equals the first octet of a pointer.
  const name = question.name
  for (let i = 0; i < size; i++) if (LOWER[octets[at + i]!]! !== name[i]!) return false
  return u16(octets, at + size) === question.qtype && u16(octets, at + size + 2) === question.qclass
}
