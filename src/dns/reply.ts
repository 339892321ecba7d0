// This file writes answers of namegate itself into a buffer of the caller. The question is copied as it arrived, including its case.
// RD, CD and the opcode are copied from the query. RA is 1; AA, TC, AD and Z are 0. The answer has an OPT record if and only if the
// query has one (E1, E2). OPT has namegate's UDP size, version 0 and the query's DO bit, but no other flag. It has none of the query's
// options. Its only option is the Extended DNS Error, if there is one.
//
// Cost: one copy of the question. The longest answer has 12 + 259 + 11 + 6 + EDE_TEXT_MAX = 488 octets, so a local answer fits every
// client. The caller must keep LOCAL_ANSWER_MAX octets free from `out.offset`.

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
import type { MessageView } from './message-view.ts'
import type { QueryView } from './query.ts'
import { HEADER_OCTETS, putU16, u16 } from './wire.ts'

/** Octets of OPT up to and including RDLENGTH. */
const OPT_FIXED_OCTETS = 11
/** The room that `writeLocalAnswer` and `writeTruncated` can need, in octets. */
export const LOCAL_ANSWER_MAX = 512

/** The parts of a query that its local answer repeats. */
export type AnsweredQuery = Pick<QueryView, 'id' | 'flags' | 'questionEnd' | 'hasOpt' | 'dnssecOk'>

/**
 * Writes the local answer to `query` at `out.offset`, and sets `out.length`. `view` has read the query.
 * If the query has no readable question, or more than one, the answer has no question.
 */
export function writeLocalAnswer(
  out: MessageView,
  query: MessageView,
  view: AnsweredQuery,
  answer: LocalAnswer,
): void {
  const flags = FLAG_QR | FLAG_RA | (view.flags & (MASK_OPCODE | FLAG_RD | FLAG_CD))
  writeHead(out, query, view, flags | (answer.rcode & MASK_RCODE))
  if (!view.hasOpt) return
  writeOpt(out, view, answer.rcode)
  if (answer.ede !== undefined) writeExtendedError(out, answer.ede, answer.text)
}

/**
 * Writes the short form of an answer that is too long for the client's UDP size (P5, E11): header, question and OPT with TC=1. AA, RD,
 * RA, AD and CD are copied from `answer`, the upstream's answer. `rcode` is its RCODE with all 12 bits. The id is the query's.
 * Writes at `out.offset`, and sets `out.length`.
 */
export function writeTruncated(
  out: MessageView,
  query: MessageView,
  view: AnsweredQuery,
  answer: MessageView,
  rcode: number,
): void {
  const kept = FLAG_AA | FLAG_RD | FLAG_RA | FLAG_AD | FLAG_CD
  const flags = u16(answer.octets, answer.offset + 2) & kept
  writeHead(out, query, view, FLAG_QR | FLAG_TC | flags | (rcode & MASK_RCODE))
  if (view.hasOpt) writeOpt(out, view, rcode)
}

/** Writes header (RFC 1035 4.1.1) and question. */
function writeHead(out: MessageView, query: MessageView, view: AnsweredQuery, flags: number): void {
  const { octets, offset: at } = out
  const end = Math.max(HEADER_OCTETS, view.questionEnd)
  putU16(octets, at, view.id)
  putU16(octets, at + 2, flags)
  putU16(octets, at + 4, view.questionEnd > 0 ? 1 : 0)
  putU16(octets, at + 6, 0)
  putU16(octets, at + 8, 0)
  putU16(octets, at + 10, view.hasOpt ? 1 : 0)
  for (let i = HEADER_OCTETS; i < end; i++) octets[at + i] = query.octets[query.offset + i]!
  out.length = end
}

/** Appends OPT without options (RFC 6891 6.1.2): root, type, UDP size, extended RCODE, version, DO and Z, RDLENGTH. */
function writeOpt(out: MessageView, view: AnsweredQuery, rcode: number): void {
  const { octets } = out
  const at = out.offset + out.length
  octets[at] = 0
  putU16(octets, at + 1, TYPE_OPT)
  putU16(octets, at + 3, OWN_UDP_SIZE)
  octets[at + 5] = rcode >>> 4
  octets[at + 6] = 0
  putU16(octets, at + 7, view.dnssecOk ? EDNS_DO : 0)
  putU16(octets, at + 9, 0)
  out.length += OPT_FIXED_OCTETS
}

/** Appends an EDE (RFC 8914 2) as the only option of the OPT at the end of `out`: option code, length, info code, text. */
function writeExtendedError(out: MessageView, code: number, text: Uint8Array): void {
  const { octets } = out
  const at = out.offset + out.length
  putU16(octets, at - 2, 6 + text.length)
  putU16(octets, at, OPTION_EDE)
  putU16(octets, at + 2, 2 + text.length)
  putU16(octets, at + 4, code)
  for (let i = 0; i < text.length; i++) octets[at + 6 + i] = text[i]!
  out.length += 6 + text.length
}
