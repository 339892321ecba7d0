// AnswerView reads an answer strictly, and finds the addresses that namegate can learn (docs/spec/semantics 4). These are the
// addresses of the question's name, and of the names that CNAMEs of the answer section reach from it. Address hints of SVCB and HTTPS
// records are included. Only `read` writes the fields. They stay valid until the next `read`, and do not refer to the message.
//
// Nothing is learned from a 'malformed' answer. After 'ok', every octet belongs to a question or a record. `read` looks at RDATA only
// in A, AAAA, CNAME, SVCB and HTTPS records of class IN in the answer section. A malformed SVCB or HTTPS record is ignored, and other
// records are still learned (docs/spec/correctness S5).
// Cost: one pass over the message, one pass over the kept records per link (at most 16), no allocation. A view takes about 600 KiB,
// enough for the largest message. A thread needs one view.

import { hashOctets } from '../core/tables/keyed-hash.ts'
import { NAME_OCTETS_MAX, nameLength } from '../core/name.ts'
import { AddressSet } from './address-set.ts'
import { Chain, ChainRecords, QUESTION_POINTER, type ChainFault } from './chain.ts'
import {
  CLASS_IN,
  FLAG_QR,
  FLAG_TC,
  MASK_OPCODE,
  MASK_RCODE,
  RCODE_NOERROR,
  TYPE_A,
  TYPE_AAAA,
  TYPE_CNAME,
  TYPE_HTTPS,
  TYPE_OPT,
  TYPE_SVCB,
} from './codes.ts'
import type { Question } from './query.ts'
import { ServiceParams } from './svcb.ts'
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
} from './wire.ts'

/** For a 'malformed' answer, the client gets SERVFAIL with EDE 24. */
export type AnswerStatus = 'ok' | 'malformed'

export class AnswerView {
  /** Set it before `read`: true if `read` takes addresses from hints of SVCB and HTTPS records. */
  learnsHints = true
  id = 0
  /** The 16 bits after the id, as in the message. */
  flags = 0
  /** All 12 bits of the RCODE, from the header and OPT (RFC 6891 6.1.3). */
  rcode = 0
  truncated = false
  qdcount = 0
  /** True if the message has exactly the asked question: DNS labels compared without case, type and class (F1). */
  questionMatches = false
  /** The fault in the CNAME chain. With a fault, nothing is learned from the answer. */
  chainFault: ChainFault = 'none'
  /** The number of CNAMEs in the chain; 0 if nothing is learned from the answer. */
  links = 0
  /** Lowest TTL of the CNAMEs in the chain, in seconds; 0xffffffff without a CNAME. */
  chainTtl = 0xffffffff
  readonly #taught = new AddressSet()
  readonly #records = new ChainRecords()
  readonly #chain = new Chain()
  readonly #service = new ServiceParams()
  readonly #name = new Uint8Array(NAME_OCTETS_MAX)
  /** The two octets of the last record owner that was only a pointer, or -1. */
  #pointer = -1
  /** The hash of the name at `#pointer`; 0 if it points to the question's name. */
  #pointerHash = 0

  /** The number of addresses. Each address occurs once. */
  get count(): number {
    return this.#taught.count
  }

  /** The family of address i: 4 or 6. */
  get families(): Uint8Array {
    return this.#taught.families
  }

  /** The 16 octets of address i, from offset 16 * i. An IPv4 address is in the first 4; the rest is zero. */
  get octets(): Uint8Array {
    return this.#taught.octets
  }

  /**
   * The TTL of address i in seconds: the lowest of its records and of the CNAMEs up to its owner. A TTL with the top bit set is 0.
   * The bounds of the configuration are not applied.
   */
  get ttls(): Uint32Array {
    return this.#taught.ttls
  }

  /** Octets from the start of the message to the first record with address i. */
  get recordOffsets(): Uint16Array {
    return this.#taught.recordOffsets
  }

  /** The number of the name in the chain that owns address i: 0 (the question) to `links`. */
  get owners(): Uint8Array {
    return this.#taught.owners
  }

  /** Returns name `link` of the chain (1 to `links`) in lower-case wire format, from offset 0. */
  linkName(link: number): Uint8Array {
    return this.#chain.names[link]!
  }

  /** Reads the message of `length` octets at `offset` as the answer to `question`. */
  read(buf: Uint8Array, offset: number, length: number, question: Question): AnswerStatus {
    this.#reset()
    if (length < HEADER_OCTETS || length > MESSAGE_OCTETS_MAX) return 'malformed'
    const end = offset + length
    this.id = u16(buf, offset)
    this.flags = u16(buf, offset + 2)
    this.rcode = this.flags & MASK_RCODE
    this.truncated = (this.flags & FLAG_TC) !== 0
    this.qdcount = u16(buf, offset + 4)
    this.#records.begin(buf, offset, end)
    const isWhole = this.#walk(buf, offset, end, question) === end
    if (isWhole && this.#mayTeach(question)) this.#learn()
    this.#records.forget()
    return isWhole ? 'ok' : 'malformed'
  }

  #reset(): void {
    this.id = this.flags = this.rcode = this.qdcount = 0
    this.truncated = this.questionMatches = false
    this.chainFault = 'none'
    this.links = 0
    this.chainTtl = 0xffffffff
    this.#taught.clear()
    this.#pointer = -1
  }

  /** Reads all questions and records. Returns the offset after the last record, or a fault. */
  #walk(buf: Uint8Array, start: number, end: number, question: Question): number {
    let at = start + HEADER_OCTETS
    if (this.qdcount === 1) {
      at = this.#question(buf, start, end, at, question)
    } else {
      for (let i = 0; i < this.qdcount && at >= 0; i++) at = skipQuestion(buf, start, end, at)
    }
    const answers = u16(buf, start + 6)
    for (let i = 0; i < answers && at >= 0; i++) at = this.#record(buf, start, end, at, true)
    const others = u16(buf, start + 8) + u16(buf, start + 10)
    for (let i = 0; i < others && at >= 0; i++) at = this.#record(buf, start, end, at, false)
    return at
  }

  #question(buf: Uint8Array, start: number, end: number, at: number, question: Question): number {
    const same = startsWithName(buf, end, at, question)
    const next = same ? at + question.nameLength : skipName(buf, start, end, at)
    if (next < 0) return next
    if (next + 4 > end) return FAULT_BOUNDS
    this.questionMatches =
      same && u16(buf, next) === question.qtype && u16(buf, next + 2) === question.qclass
    if (this.questionMatches) {
      this.#pointer = QUESTION_POINTER
      this.#pointerHash = 0
      this.#chain.begin(question)
    }
    return next + 4
  }

  #record(buf: Uint8Array, start: number, end: number, at: number, answer: boolean): number {
    // An earlier record had the same pointer, so the pointer is valid and its name is known.
    const known = at + 2 <= end && u16(buf, at) === this.#pointer
    const fixed = known ? at + 2 : skipName(buf, start, end, at)
    if (fixed < 0) return fixed
    const data = fixed + RECORD_FIXED_OCTETS
    if (data > end) return FAULT_BOUNDS
    const next = data + u16(buf, fixed + 8)
    if (next > end) return FAULT_BOUNDS
    const type = u16(buf, fixed)
    // An OPT in any section counts, also if there are several. A higher RCODE in one OPT makes the answer an error.
    if (type === TYPE_OPT) this.rcode |= buf[fixed + 4]! << 4
    if (!answer || u16(buf, fixed + 2) !== CLASS_IN) return next
    if (type === TYPE_CNAME && skipName(buf, start, end, data) !== next) return FAULT_BOUNDS
    if (!this.#isKept(type, buf, data, next)) return next
    const pointer = fixed - at === 2 ? u16(buf, at) : 0
    const owner = known ? this.#pointerHash : this.#hash(buf, start, end, at, pointer)
    this.#records.add(at, fixed, owner)
    return next
  }

  /** Returns true if a record can be a link of the chain or have addresses. */
  #isKept(type: number, buf: Uint8Array, data: number, next: number): boolean {
    switch (type) {
      case TYPE_CNAME:
        return true
      case TYPE_A:
        return next - data === 4
      case TYPE_AAAA:
        return next - data === 16
      case TYPE_SVCB:
      case TYPE_HTTPS:
        return this.learnsHints && this.#service.read(buf, data, next) && this.#service.hasHints
      default:
        return false
    }
  }

  #hash(buf: Uint8Array, start: number, end: number, at: number, pointer: number): number {
    readName(buf, start, end, at, this.#name)
    const hash = hashOctets(this.#name, 0, nameLength(this.#name))
    if (pointer !== 0) {
      this.#pointer = pointer
      this.#pointerHash = hash
    }
    return hash
  }

  /** Returns true if namegate can learn from the answer. 'class IN' of docs/spec/semantics 4 means the classes of question and record. */
  #mayTeach(question: Question): boolean {
    return (
      this.questionMatches &&
      (this.flags & (FLAG_QR | MASK_OPCODE)) === FLAG_QR &&
      this.rcode === RCODE_NOERROR &&
      question.qclass === CLASS_IN &&
      this.#records.count > 0
    )
  }

  #learn(): void {
    const records = this.#records
    const chain = this.#chain
    const { buf, start } = records
    this.chainFault = chain.follow(records)
    if (this.chainFault !== 'none') return
    this.links = chain.count - 1
    this.chainTtl = chain.ttls[this.links]!
    for (let i = 0; i < records.count; i++) {
      const type = records.types[i]!
      if (type === TYPE_CNAME) continue
      const owner = chain.find(records, i)
      if (owner < 0) continue
      const ttl = Math.min(chain.ttls[owner]!, records.ttls[i]!)
      const data = records.datas[i]!
      this.#taught.from(records.offsets[i]! - start, ttl, owner)
      if (type === TYPE_A) this.#taught.add(4, buf, data)
      else if (type === TYPE_AAAA) this.#taught.add(6, buf, data)
      else this.#learnHints(buf, data)
    }
  }

  /** Adds the addresses of a record's hints (RFC 9460 7.3). The record was read before, and has hints. */
  #learnHints(buf: Uint8Array, data: number): void {
    const service = this.#service
    service.read(buf, data, data + u16(buf, data - 2))
    for (let at = 0; at < service.ipv4Octets; at += 4) {
      this.#taught.add(4, buf, service.ipv4At + at)
    }
    for (let at = 0; at < service.ipv6Octets; at += 16) {
      this.#taught.add(6, buf, service.ipv6At + at)
    }
  }
}

/** Returns true if the octets at `at` are the question's name, compared without case. */
function startsWithName(buf: Uint8Array, end: number, at: number, question: Question): boolean {
  const { name, nameLength } = question
  if (at + nameLength > end) return false
  // The length octet of a DNS label is below 64, so LOWER does not change it, and it never equals the first octet of a pointer.
  for (let i = 0; i < nameLength; i++) if (LOWER[buf[at + i]!]! !== name[i]!) return false
  return true
}
