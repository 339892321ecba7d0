// Makes namegate's local answers octet by octet from the query: the expectation of docs/spec/semantics 4, without any code of src.

import assert from 'node:assert/strict'
import {
  concat,
  mkMessage,
  opt,
  OPT,
  option,
  text,
  type MkMessage,
  type MkRecord,
} from '../../support/messages.ts'

export const NOERROR = 0
export const FORMERR = 1
export const SERVFAIL = 2
export const NXDOMAIN = 3
export const NOTIMP = 4
export const REFUSED = 5
export const BADVERS = 16

export const QR = 0x8000
export const AA = 0x0400
export const TC = 0x0200
export const RD = 0x0100
export const RA = 0x0080
export const Z = 0x0040
export const AD = 0x0020
export const CD = 0x0010
export const DO = 0x8000
const OPCODE = 0x7800
const EDE = 15
const OWN_UDP_SIZE = 1232

export interface LocalAnswer {
  readonly rcode: number
  readonly ede?: number
  readonly text?: string
  /** Whether the answer has the question. Default: when there is exactly one. */
  readonly question?: boolean
  /** Whether the answer has an OPT. Default: when the query has one. */
  readonly opt?: boolean
}

/** The local answer to a query. */
export function localAnswer(query: MkMessage, answer: LocalAnswer): Uint8Array {
  const { rcode, ede } = answer
  const flags = QR | RA | ((query.flags ?? 0) & (OPCODE | RD | CD)) | (rcode & 15)
  const asked = query.questions ?? []
  const count = query.counts?.[0] ?? asked.length
  const hasQuestion = answer.question ?? (count === 1 && asked.length === 1)
  const own = (query.additionals ?? []).find(({ type }) => type === OPT)
  const hasOpt = answer.opt ?? own !== undefined
  return mkMessage({
    id: query.id ?? 0,
    flags,
    questions: hasQuestion ? asked.slice(0, 1) : [],
    additionals: hasOpt ? [ownOpt(own, rcode, ede, answer.text)] : [],
  })
}

function ownOpt(
  asked: MkRecord | undefined,
  rcode: number,
  ede: number | undefined,
  words = '',
): MkRecord {
  return opt({
    udpSize: OWN_UDP_SIZE,
    extendedRcode: rcode >> 4,
    flags: (asked?.ttl ?? 0) & DO,
    options:
      ede === undefined
        ? new Uint8Array(0)
        : option(EDE, concat(Uint8Array.of(ede >> 8, ede & 255), text(words))),
  })
}

/** The same octets with another id. */
export function withId(octets: Uint8Array, id: number): Buffer {
  const copy = Buffer.from(octets)
  if (copy.length >= 2) copy.writeUInt16BE(id, 0)
  return copy
}

export function assertSame(got: Uint8Array, want: Uint8Array, what: string): void {
  assert.equal(Buffer.from(got).toString('hex'), Buffer.from(want).toString('hex'), what)
}

export function rcodeOf(octets: Uint8Array): number {
  return (octets[3] ?? 255) & 15
}

/** The first Extended DNS Error of an answer whose only record is its OPT; -1 without one. */
export function edeOf(octets: Uint8Array): number {
  const at = Buffer.from(octets).lastIndexOf(Buffer.from([0, EDE, 0]))
  return at < 12 ? -1 : Buffer.from(octets).readUInt16BE(at + 4)
}
