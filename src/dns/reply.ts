// Answers that namegate makes itself, written into a buffer of the caller. The question is copied as it came,
// case included; RD, CD and the opcode come from the query; RA=1; AA, TC, AD and Z are 0. An OPT record stands
// in the answer if and only if one stood in the query (E1, E2): own UDP size, version 0, the query's DO bit, no
// other flag, none of the query's options, and the Extended DNS Error if there is one.
//
// Cost: one copy of the question. Longest: 12 + 259 + 11 + 6 + EDE_TEXT_MAX = 488 octets, so that a local
// answer fits every client; the caller keeps `LOCAL_ANSWER_MAX` octets free at `at`.

import {
  EDNS_DO,
  FLAG_AA,
  FLAG_AD,
  FLAG_CD,
  FLAG_QR,
  FLAG_RA,
  FLAG_RD,
  FLAG_TC,
  MASK_OPCODE,
  MASK_RCODE,
  OPTION_EDE,
  OWN_UDP_SIZE,
  TYPE_OPT,
  type LocalAnswer,
} from './codes.ts'
import type { QueryView } from './query.ts'
import { HEADER_OCTETS, putU16, u16 } from './wire.ts'

/** Room that `writeLocalAnswer` and `writeTruncated` may need, in octets. */
export const LOCAL_ANSWER_MAX = 512

/** Of a query, what its local answer repeats. */
export type AnsweredQuery = Pick<QueryView, 'id' | 'flags' | 'questionEnd' | 'hasOpt' | 'dnssecOk'>

/**
 * Writes the local answer to the query that lies at `queryOffset` and was read into `view`; returns its octets.
 * A query whose question could not be read, or with other than one question, gets no question back.
 */
export function writeLocalAnswer(
  out: Uint8Array,
  at: number,
  query: Uint8Array,
  queryOffset: number,
  view: AnsweredQuery,
  answer: LocalAnswer,
): number {
  const flags = FLAG_QR | FLAG_RA | (view.flags & (MASK_OPCODE | FLAG_RD | FLAG_CD))
  const behind = writeHead(out, at, query, queryOffset, view, flags | (answer.rcode & MASK_RCODE))
  if (!view.hasOpt) return behind - at
  return writeOpt(out, behind, view, answer.rcode, answer.ede, answer.text) - at
}

/**
 * Writes the form in which an answer too long for the client's UDP size goes out (P5, E11): header, question and
 * OPT with TC=1. AA, RA, AD, CD and the RCODE (`rcode`, all 12 bits) are the upstream's, whose header lies at
 * `answerOffset`; the id is the query's. Returns its octets.
 */
export function writeTruncated(
  out: Uint8Array,
  at: number,
  query: Uint8Array,
  queryOffset: number,
  view: AnsweredQuery,
  answer: Uint8Array,
  answerOffset: number,
  rcode: number,
): number {
  const kept = FLAG_AA | FLAG_RD | FLAG_RA | FLAG_AD | FLAG_CD
  const flags = FLAG_QR | FLAG_TC | (u16(answer, answerOffset + 2) & kept) | (rcode & MASK_RCODE)
  const behind = writeHead(out, at, query, queryOffset, view, flags)
  return (view.hasOpt ? writeOpt(out, behind, view, rcode, undefined, NO_TEXT) : behind) - at
}

const NO_TEXT = new Uint8Array(0)

/** Header (RFC 1035 4.1.1) and question; returns the offset behind them. */
function writeHead(
  out: Uint8Array,
  at: number,
  query: Uint8Array,
  queryOffset: number,
  view: AnsweredQuery,
  flags: number,
): number {
  const end = Math.max(HEADER_OCTETS, view.questionEnd)
  putU16(out, at, view.id)
  putU16(out, at + 2, flags)
  putU16(out, at + 4, view.questionEnd > 0 ? 1 : 0)
  putU16(out, at + 6, 0)
  putU16(out, at + 8, 0)
  putU16(out, at + 10, view.hasOpt ? 1 : 0)
  for (let i = HEADER_OCTETS; i < end; i++) out[at + i] = query[queryOffset + i]!
  return at + end
}

/** OPT (RFC 6891 6.1.2): root, type, UDP size, extended RCODE, version, DO and Z, RDLENGTH, options. */
function writeOpt(
  out: Uint8Array,
  at: number,
  view: AnsweredQuery,
  rcode: number,
  ede: number | undefined,
  text: Uint8Array,
): number {
  out[at] = 0
  putU16(out, at + 1, TYPE_OPT)
  putU16(out, at + 3, OWN_UDP_SIZE)
  out[at + 5] = rcode >>> 4
  out[at + 6] = 0
  putU16(out, at + 7, view.dnssecOk ? EDNS_DO : 0)
  const data = at + 11
  if (ede === undefined) {
    putU16(out, at + 9, 0)
    return data
  }
  // EDE (RFC 8914 2): option code, length, info code, text.
  putU16(out, at + 9, 6 + text.length)
  putU16(out, data, OPTION_EDE)
  putU16(out, data + 2, 2 + text.length)
  putU16(out, data + 4, ede)
  for (let i = 0; i < text.length; i++) out[data + 6 + i] = text[i]!
  return data + 6 + text.length
}
