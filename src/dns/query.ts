// A client's query, read strictly from its octets into one object that is used again for the next query.
// Written by `read` alone; between two reads the fields describe one message and hold no reference to it.
// Always: after 'ok' the whole message was walked, every octet belongs to a record, and there is one question.
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

/** What to do with a query (docs/spec/semantics 4): forward by policy, say nothing, or answer with that RCODE. */
export type QueryStatus = 'ok' | 'silent' | 'formerr' | 'notimp' | 'badvers'

/** One question; the name in wire octets, lower case, no compression. */
export interface Question {
  readonly name: Uint8Array
  /** Octets of `name` in use, the final zero included; 1..255. */
  readonly nameLength: number
  readonly qtype: number
  readonly qclass: number
}

/** A question whose name was hashed when it was read. */
export interface HashedQuestion extends Question {
  /** `hashOctets` of the name. */
  readonly nameHash: number
}

/** Smallest UDP size that counts (RFC 6891 6.2.3), and the size without EDNS. */
export const UDP_SIZE_MIN = 512

/** From here on a length octet is none: two bits of a pointer, or reserved ones (RFC 1035 4.1.4). */
const POINTER = 64

/** Octets that patterns can match, after lowering: a-z 0-9 - _ (docs/spec/semantics 1). */
const FITS = Uint8Array.from({ length: 256 }, (_, octet) => {
  const letter = octet >= 0x61 && octet <= 0x7a
  const digit = octet >= 0x30 && octet <= 0x39
  return letter || digit || octet === 0x2d || octet === 0x5f ? 1 : 0
})

export class QueryView implements HashedQuestion {
  id = 0
  /** The 16 bits behind the id, as they came. */
  flags = 0
  rd = false
  cd = false
  ad = false
  readonly name = new Uint8Array(255)
  /** 0 when no question could be read. */
  nameLength = 0
  /** `hashOctets` of the name. */
  nameHash = 0
  /** Whether every octet of every label is one of a-z 0-9 - _; the root fits. */
  nameFits = false
  labelCount = 0
  qtype = 0
  qclass = 0
  /** Octets from the start of the message to behind the only question; 0 when there is none to repeat. */
  questionEnd = 0
  /** Whether an OPT record stands in the additional section, be it malformed. */
  hasOpt = false
  /** What the client takes over UDP, in octets; 512 without OPT. */
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
    // Another opcode may have another layout, so its faults are none of ours; the walk only looked for OPT.
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

  /** The offset behind the last record, or a fault. Goes on behind what it can, so that OPT is seen (E2, E8). */
  #walk(buf: Uint8Array, start: number, end: number): number {
    const questions = u16(buf, start + 4)
    let at = start + HEADER_OCTETS
    if (questions === 1) {
      at = this.#question(buf, start, end, at)
    } else if (questions > 1) {
      // Never only the first (RFC 9619): not even its name is kept.
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
    // A name without pointers takes as many octets as it has.
    if (next - at !== this.nameLength) this.#malformed = true
    this.qtype = u16(buf, next)
    this.qclass = u16(buf, next + 2)
    this.questionEnd = next + 4 - start
    return next + 4
  }

  /**
   * Reads a sound name without pointers, as nearly every one is, and measures it in the same pass: labels, length and
   * alphabet; then hashes it. The offset behind it, or -1 for any other, which is left to `readName`; what that made is one, too.
   */
  #plainName(buf: Uint8Array, end: number, start: number): number {
    const name = this.name
    let at = start
    let labels = 0
    let fits = 1
    for (;;) {
      const size = at < end ? buf[at]! : POINTER
      const last = at + size
      // Behind a label there is a zero at least.
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
    // What options look like in a later version of EDNS is not known here (RFC 6891 6.1.3).
    if (isOpt && this.ednsVersion === 0 && !optionsAreSound(buf, data, next)) this.#malformed = true
    return next
  }

  /** CLASS is the UDP size; TTL is extended RCODE (8 bits), version (8), DO (1), Z (15) (RFC 6891 6.1.3). */
  #opt(buf: Uint8Array, fixed: number): void {
    const ttl = u32(buf, fixed + 4)
    this.hasOpt = true
    this.udpSize = Math.max(UDP_SIZE_MIN, u16(buf, fixed + 2))
    this.ednsVersion = (ttl >>> 16) & 0xff
    this.dnssecOk = (ttl & EDNS_DO) !== 0
  }
}

/** Options are (code u16, length u16, octets)*; a COOKIE has 8 octets, or 16 to 40 (RFC 7873 4). */
function optionsAreSound(buf: Uint8Array, at: number, end: number): boolean {
  while (at < end) {
    if (at + 4 > end) return false
    const size = u16(buf, at + 2)
    if (u16(buf, at) === OPTION_COOKIE && size !== 8 && (size < 16 || size > 40)) return false
    at += 4 + size
  }
  return at === end
}
