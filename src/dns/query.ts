// QueryView reads a client's query strictly. One object is reused for all queries. Only `read` writes the fields; they do not refer
// to the message. After 'ok', the message has exactly one question, and every octet belongs to the question or a record.
// Cost: one pass, no allocation.

import { hashOctets } from '../core/tables/keyed-hash.ts'
import { NAME_OCTETS_MAX } from '../core/name.ts'
import {
  EDNS_DO,
  FLAG_AD,
  FLAG_CD,
  FLAG_QR,
  FLAG_RD,
  MASK_OPCODE,
  OPTION_COOKIE,
  TYPE_OPT,
} from './codes.ts'
import {
  FAULT_BOUNDS,
  HEADER_OCTETS,
  LOWER,
  MESSAGE_OCTETS_MAX,
  readName,
  RECORD_FIXED_OCTETS,
  skipName,
  skipQuestion,
  u16,
  u32,
} from './wire.ts'

/** What the admission does with a query (docs/spec/semantics 4). 'ok': asks policy. 'silent': no answer. Others: answers this RCODE. */
export type QueryStatus = 'ok' | 'silent' | 'formerr' | 'notimp' | 'badvers'

/** One question. The name is in lower-case wire format without compression. */
export interface Question {
  readonly name: Uint8Array
  /** The number of octets of the name, including the final zero; 1..255. */
  readonly nameLength: number
  readonly qtype: number
  readonly qclass: number
}

/** A question with the hash of its name. */
export interface HashedQuestion extends Question {
  /** `hashOctets` of the name. */
  readonly nameHash: number
}

/** The size without EDNS. A smaller UDP size in OPT is raised to this one (RFC 6891 6.2.3). */
export const UDP_SIZE_MIN = 512

/** An octet of 64 or more is no length of a DNS label: its top bits mark a pointer, or are reserved (RFC 1035 4.1.4). */
const POINTER = 64

/** 1 for lower-case octets that patterns can match: a-z 0-9 - _ (docs/spec/semantics 1). */
const FITS = Uint8Array.from({ length: 256 }, (_, octet) => {
  const letter = octet >= 0x61 && octet <= 0x7a
  const digit = octet >= 0x30 && octet <= 0x39
  return letter || digit || octet === 0x2d || octet === 0x5f ? 1 : 0
})

export class QueryView implements HashedQuestion {
  id = 0
  /** The 16 bits after the id, as in the message. */
  flags = 0
  rd = false
  cd = false
  ad = false
  readonly name = new Uint8Array(255)
  /** 0 if no question could be read. */
  nameLength = 0
  /** `hashOctets` of the name. */
  nameHash = 0
  /** True if every octet of every DNS label is one of a-z 0-9 - _. Also true for the root. */
  nameFits = false
  labelCount = 0
  qtype = 0
  qclass = 0
  /** Octets from the start of the message to the end of the only question; 0 if there is no question that an answer can repeat. */
  questionEnd = 0
  /** True if the additional section has an OPT record, even a malformed one. */
  hasOpt = false
  /** The longest UDP message that the client accepts, in octets; 512 without OPT. */
  udpSize = UDP_SIZE_MIN
  ednsVersion = 0
  dnssecOk = false
  #malformed = false

  /** Reads the message of `length` octets at `offset`. */
  read(buf: Uint8Array, offset: number, length: number): QueryStatus {
    this.#reset()
    if (length < HEADER_OCTETS) return 'silent'
    this.id = u16(buf, offset)
    const flags = u16(buf, offset + 2)
    this.flags = flags
    if ((flags & FLAG_QR) !== 0) return 'silent'
    this.rd = (flags & FLAG_RD) !== 0
    this.ad = (flags & FLAG_AD) !== 0
    this.cd = (flags & FLAG_CD) !== 0
    const end = offset + length
    if (length > MESSAGE_OCTETS_MAX || this.#walk(buf, offset, end) !== end) this.#malformed = true
    // A message with another opcode can have another layout, so its faults are ignored. It was read only to find OPT.
    if ((flags & MASK_OPCODE) !== 0) return 'notimp'
    if (this.#malformed) return 'formerr'
    if (this.ednsVersion > 0) return 'badvers'
    return u16(buf, offset + 4) === 0 ? 'notimp' : 'ok'
  }

  #reset(): void {
    this.id = this.flags = 0
    this.rd = this.cd = this.ad = false
    this.nameLength = this.nameHash = this.labelCount = 0
    this.nameFits = false
    this.qtype = this.qclass = this.questionEnd = 0
    this.hasOpt = this.dnssecOk = false
    this.udpSize = UDP_SIZE_MIN
    this.ednsVersion = 0
    this.#malformed = false
  }

  /** Returns the offset after the last record, or a fault. If possible, it continues after a fault, to find OPT (E2, E8). */
  #walk(buf: Uint8Array, start: number, end: number): number {
    const questions = u16(buf, start + 4)
    let at = start + HEADER_OCTETS
    if (questions === 1) {
      at = this.#question(buf, start, end, at)
    } else if (questions > 1) {
      // The first of several questions must not be used (RFC 9619), so its name is not read.
      this.#malformed = true
      for (let i = 0; i < questions && at >= 0; i++) at = skipQuestion(buf, start, end, at)
    }
    const others = u16(buf, start + 6) + u16(buf, start + 8)
    for (let i = 0; i < others && at >= 0; i++) at = this.#record(buf, start, end, at, false)
    const additional = u16(buf, start + 10)
    for (let i = 0; i < additional && at >= 0; i++) at = this.#record(buf, start, end, at, true)
    return at
  }

  #question(buf: Uint8Array, start: number, end: number, at: number): number {
    let next = this.#plainName(buf, end, at)
    if (next < 0) {
      next = readName(buf, start, end, at, this.name)
      if (next < 0) return next
      this.#plainName(this.name, NAME_OCTETS_MAX, 0)
    }
    if (next + 4 > end) return FAULT_BOUNDS
    // A name with pointers takes a different number of octets than the name without compression.
    if (next - at !== this.nameLength) this.#malformed = true
    this.qtype = u16(buf, next)
    this.qclass = u16(buf, next + 2)
    this.questionEnd = next + 4 - start
    return next + 4
  }

  /**
   * Reads a well-formed name without pointers, as nearly every name is. In the same pass it counts DNS labels and octets and checks the
   * alphabet; then it hashes the name. Returns the offset after the name, or -1 for any other name. `readName` then reads this name,
   * and writes it without pointers.
   */
  #plainName(buf: Uint8Array, end: number, start: number): number {
    const name = this.name
    let at = start
    let labels = 0
    let fits = 1
    for (;;) {
      const size = at < end ? buf[at]! : POINTER
      const last = at + size
      // After a DNS label, at least a zero octet follows.
      const least = last - start + (size === 0 ? 1 : 2)
      if (size >= POINTER || last >= end || least > NAME_OCTETS_MAX) return -1
      name[at - start] = size
      if (size === 0) break
      for (at++; at <= last; at++) {
        const octet = LOWER[buf[at]!]!
        name[at - start] = octet
        fits &= FITS[octet]!
      }
      labels++
    }
    this.nameLength = at + 1 - start
    this.labelCount = labels
    this.nameFits = fits === 1
    this.nameHash = hashOctets(name, 0, this.nameLength)
    return at + 1
  }

  #record(buf: Uint8Array, start: number, end: number, at: number, additional: boolean): number {
    const fixed = skipName(buf, start, end, at)
    if (fixed < 0) return fixed
    const data = fixed + RECORD_FIXED_OCTETS
    if (data > end) return FAULT_BOUNDS
    const isOpt = u16(buf, fixed) === TYPE_OPT
    if (isOpt) {
      if (!additional || this.hasOpt || buf[at] !== 0) this.#malformed = true
      if (additional) this.#opt(buf, fixed)
    }
    const next = data + u16(buf, fixed + 8)
    if (next > end) return FAULT_BOUNDS
    // Later versions of EDNS can have other options (RFC 6891 6.1.3).
    if (isOpt && this.ednsVersion === 0 && !optionsAreSound(buf, data, next)) this.#malformed = true
    return next
  }

  /** Reads OPT. CLASS is the UDP size. TTL is extended RCODE (8 bits), version (8), DO (1), Z (15) (RFC 6891 6.1.3). */
  #opt(buf: Uint8Array, fixed: number): void {
    const ttl = u32(buf, fixed + 4)
    this.hasOpt = true
    this.udpSize = Math.max(UDP_SIZE_MIN, u16(buf, fixed + 2))
    this.ednsVersion = (ttl >>> 16) & 0xff
    this.dnssecOk = (ttl & EDNS_DO) !== 0
  }
}

/** Checks the options (code u16, length u16, octets)*. A COOKIE must have 8 octets, or 16 to 40 (RFC 7873 4). */
function optionsAreSound(buf: Uint8Array, at: number, end: number): boolean {
  while (at < end) {
    if (at + 4 > end) return false
    const size = u16(buf, at + 2)
    if (u16(buf, at) === OPTION_COOKIE && size !== 8 && (size < 16 || size > 40)) return false
    at += 4 + size
  }
  return at === end
}
