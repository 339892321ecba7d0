// This file makes queries and converts messages to text for `namegate ask`. It is not used on the packet path. It is the only file
// that imports dns-packet, for two purposes: to lay out a header with an OPT record, and to read RDATA of types without names. Names
// are read and written here and not by dns-packet, because dns-packet splits a DNS label at a dot inside it, and replaces some octets
// by U+FFFD. No function throws: bad input gives a result with a reason.

import * as packet from 'dns-packet'
import { NAME_OCTETS_MAX, parseName } from '../core/name.ts'
import {
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
  TYPE_OPT,
} from './codes.ts'
import {
  formatAbsolute,
  formatClass,
  formatExtendedError,
  formatOpcode,
  formatRcode,
  formatRdata,
  formatText,
  formatType,
  formatUnknown,
  nearestType,
  parseType,
} from './presentation.ts'
import { HEADER_OCTETS, putU16, readName, RECORD_FIXED_OCTETS, u16, u32 } from './wire.ts'

/** A query. It has an OPT record if `udpSize` is given. */
export interface QueryText {
  readonly id: number
  /** The name as text: `\DDD` for special octets, the final dot is optional. */
  readonly name: string
  /** The type as text, such as `A`, `https` or `TYPE65280`. */
  readonly type: string
  readonly udpSize?: number
  readonly dnssecOk?: boolean
}

export type EncodeResult =
  | { readonly kind: 'ok'; readonly octets: Uint8Array }
  | { readonly kind: 'bad'; readonly reason: string }

export interface RecordText {
  readonly name: string
  readonly type: string
  readonly class: string
  /** The TTL in seconds. */
  readonly ttl: number
  /** RDATA in presentation format. */
  readonly data: string
}

export interface EdnsText {
  readonly version: number
  readonly udpSize: number
  readonly dnssecOk: boolean
  /** Extended DNS Errors, such as `15 (Blocked)`, followed by the text if there is one. */
  readonly errors: readonly string[]
  /** All other options: the code, and the octets in hexadecimal. */
  readonly options: readonly { readonly code: number; readonly data: string }[]
}

export interface MessageText {
  readonly id: number
  readonly opcode: string
  readonly rcode: string
  /** The flags that are set: qr, aa, tc, rd, ra, ad, cd. */
  readonly flags: readonly string[]
  readonly questions: readonly Pick<RecordText, 'name' | 'type' | 'class'>[]
  readonly answers: readonly RecordText[]
  readonly authorities: readonly RecordText[]
  /** The additional records without OPT, which is in `edns`. */
  readonly additionals: readonly RecordText[]
  readonly edns: EdnsText | undefined
}

export type DecodeResult =
  | { readonly kind: 'ok'; readonly message: MessageText }
  | { readonly kind: 'bad'; readonly reason: string }

const FLAG_NAMES: readonly (readonly [bit: number, name: string])[] = [
  [FLAG_QR, 'qr'],
  [FLAG_AA, 'aa'],
  [FLAG_TC, 'tc'],
  [FLAG_RD, 'rd'],
  [FLAG_RA, 'ra'],
  [FLAG_AD, 'ad'],
  [FLAG_CD, 'cd'],
]

/** Makes a recursive query of class IN. Returns its octets, or the reason why the name or type is bad. */
export function encodeQuery(query: QueryText): EncodeResult {
  const name = parseName(query.name)
  if (name.kind === 'bad') return { kind: 'bad', reason: `name: ${name.reason}` }
  const type = parseType(query.type)
  if (type === undefined)
    return {
      kind: 'bad',
      reason: `unknown type ${JSON.stringify(query.type)}${nearestType(query.type)}`,
    }
  const opt: packet.OptAnswer = {
    type: 'OPT',
    name: '.',
    udpPayloadSize: query.udpSize ?? 0,
    extendedRcode: 0,
    ednsVersion: 0,
    flags: query.dnssecOk === true ? packet.DNSSEC_OK : 0,
    flag_do: query.dnssecOk === true,
    options: [],
  }
  // The root as the question's name takes one octet after the header, which the real name then replaces.
  const frame = packet.encode({
    type: 'query',
    id: query.id,
    flags: packet.RECURSION_DESIRED,
    questions: [{ type: 'A', name: '.' }],
    additionals: query.udpSize === undefined ? [] : [opt],
  })
  const octets = new Uint8Array(frame.length - 1 + name.name.length)
  octets.set(frame.subarray(0, HEADER_OCTETS))
  octets.set(name.name, HEADER_OCTETS)
  octets.set(frame.subarray(HEADER_OCTETS + 1), HEADER_OCTETS + name.name.length)
  putU16(octets, HEADER_OCTETS + name.name.length, type)
  return { kind: 'ok', octets }
}

/** Reads a whole message strictly. RDATA that does not fit its type is shown as octets. */
export function decodeMessage(buf: Uint8Array, offset: number, length: number): DecodeResult {
  if (length < HEADER_OCTETS) return { kind: 'bad', reason: 'shorter than a header' }
  const cursor: Cursor = { buf, start: offset, end: offset + length, at: offset + HEADER_OCTETS }
  const questions: Pick<RecordText, 'name' | 'type' | 'class'>[] = []
  for (let i = u16(buf, offset + 4); i > 0; i--) {
    const question = decodeQuestion(cursor)
    if (question === undefined) return malformed(cursor)
    questions.push(question)
  }
  const edns: EdnsSink = { rcode: 0, edns: undefined }
  const sections: RecordText[][] = []
  for (let section = 0; section < 3; section++) {
    const records: RecordText[] = []
    for (let i = u16(buf, offset + 6 + section * 2); i > 0; i--) {
      const record = decodeRecord(cursor, edns)
      if (record === undefined) return malformed(cursor)
      if (record !== 'opt') records.push(record)
    }
    sections.push(records)
  }
  if (cursor.at !== cursor.end) return { kind: 'bad', reason: 'octets behind the last record' }
  const [answers = [], authorities = [], additionals = []] = sections
  const flags = u16(buf, offset + 2)
  return {
    kind: 'ok',
    message: {
      id: u16(buf, offset),
      opcode: formatOpcode((flags & MASK_OPCODE) >>> 11),
      rcode: formatRcode(edns.rcode | (flags & MASK_RCODE)),
      flags: FLAG_NAMES.filter(([bit]) => (flags & bit) !== 0).map(([, name]) => name),
      questions,
      answers,
      authorities,
      additionals,
      edns: edns.edns,
    },
  }
}

interface Cursor {
  readonly buf: Uint8Array
  readonly start: number
  readonly end: number
  at: number
}

interface EdnsSink {
  rcode: number
  edns: EdnsText | undefined
}

function malformed(cursor: Cursor): DecodeResult {
  return { kind: 'bad', reason: `malformed at octet ${cursor.at - cursor.start}` }
}

/** Reads the name at the cursor. Returns its text and the offset after it, where `size` octets must follow. Does not move the cursor. */
function decodeOwner(cursor: Cursor, size: number): { name: string; behind: number } | undefined {
  const name = new Uint8Array(NAME_OCTETS_MAX)
  const behind = readName(cursor.buf, cursor.start, cursor.end, cursor.at, name)
  if (behind < 0 || behind + size > cursor.end) return undefined
  return { name: formatAbsolute(name), behind }
}

function decodeQuestion(cursor: Cursor): Pick<RecordText, 'name' | 'type' | 'class'> | undefined {
  const owner = decodeOwner(cursor, 4)
  if (owner === undefined) return undefined
  const { buf } = cursor
  cursor.at = owner.behind + 4
  return {
    name: owner.name,
    type: formatType(u16(buf, owner.behind)),
    class: formatClass(u16(buf, owner.behind + 2)),
  }
}

function decodeRecord(cursor: Cursor, edns: EdnsSink): RecordText | 'opt' | undefined {
  const owner = decodeOwner(cursor, RECORD_FIXED_OCTETS)
  if (owner === undefined) return undefined
  const { buf, start, end } = cursor
  const fixed = owner.behind
  const at = fixed + RECORD_FIXED_OCTETS
  const next = at + u16(buf, fixed + 8)
  if (next > end) return undefined
  const type = u16(buf, fixed)
  const ttl = u32(buf, fixed + 4)
  cursor.at = next
  if (type === TYPE_OPT) {
    edns.rcode |= (ttl >>> 24) << 4
    edns.edns ??= decodeEdns(u16(buf, fixed + 2), ttl, buf.subarray(at, next))
    return 'opt'
  }
  const data =
    formatRdata({ buf, start, end, type, at, next }) ??
    formatForeign(type, buf.subarray(at, next)) ??
    formatUnknown(buf.subarray(at, next))
  return {
    name: owner.name,
    type: formatType(type),
    class: formatClass(u16(buf, fixed + 2)),
    ttl,
    data,
  }
}

/** Reads the options of an OPT record. An option whose header does not fit is left out; a value that does not fit is cut. */
function decodeEdns(udpSize: number, ttl: number, data: Uint8Array): EdnsText {
  const errors: string[] = []
  const options: { code: number; data: string }[] = []
  for (let at = 0; at + 4 <= data.length; at += 4 + u16(data, at + 2)) {
    const code = u16(data, at)
    const value = data.subarray(at + 4, at + 4 + u16(data, at + 2))
    if (code === OPTION_EDE && value.length >= 2) {
      const info = u16(value, 0)
      const text = value.length > 2 ? ` ${formatText(value.subarray(2))}` : ''
      errors.push(`${info} (${formatExtendedError(info)})${text}`)
    } else {
      options.push({ code, data: Buffer.from(value).toString('hex') })
    }
  }
  return {
    version: (ttl >>> 16) & 0xff,
    udpSize,
    dnssecOk: (ttl & packet.DNSSEC_OK) !== 0,
    errors,
    options,
  }
}

/** Formats RDATA of a type without names with dns-packet, which gets a message with this record only. */
function formatForeign(type: number, data: Uint8Array): string | undefined {
  const message = Buffer.alloc(HEADER_OCTETS + 1 + RECORD_FIXED_OCTETS + data.length)
  putU16(message, 6, 1)
  putU16(message, HEADER_OCTETS + 1, type)
  putU16(message, HEADER_OCTETS + 3, 1)
  putU16(message, HEADER_OCTETS + 9, data.length)
  message.set(data, HEADER_OCTETS + 1 + RECORD_FIXED_OCTETS)
  try {
    const record = packet.decode(message).answers?.[0]
    return record === undefined ? undefined : formatAnswer(record)
  } catch {
    return undefined
  }
}

function formatAnswer(record: packet.Answer): string | undefined {
  if (record.type === 'DS') {
    const { keyTag, algorithm, digestType, digest } = record.data
    return `${keyTag} ${algorithm} ${digestType} ${digest.toString('hex')}`
  }
  if (record.type === 'SSHFP') {
    return `${record.data.algorithm} ${record.data.hash} ${record.data.fingerprint}`
  }
  if (record.type === 'TLSA') {
    const { usage, selector, matchingType, certificate } = record.data
    return `${usage} ${selector} ${matchingType} ${certificate.toString('hex')}`
  }
  return undefined
}
