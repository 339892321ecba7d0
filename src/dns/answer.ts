// An upstream's answer, read strictly from its octets, and what it teaches (docs/spec/semantics 4): the addresses of the
// question name and of the names that CNAMEs of the same answer section reach from it, the address hints of SVCB and
// HTTPS records among them. Written by `read` alone; the fields hold until the next `read`, and no reference to the
// message is kept.
//
// Always: 'malformed' teaches nothing; 'ok' means that every octet belongs to a question or a record. RDATA is
// looked at only in A, AAAA, CNAME, SVCB and HTTPS of class IN in the answer section, and in nothing else. A malformed
// SVCB or HTTPS record teaches nothing and spoils nothing (docs/spec/correctness S5).
// Cost: one pass over the message, one over the kept records for each link (at most 16), no allocation. One
// view holds about 600 KiB, enough for the largest message; a worker needs one.

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
  u32,
} from './wire.ts'

/** 'malformed': the client gets SERVFAIL with EDE 24. */
export type AnswerStatus = 'ok' | 'malformed'

export class AnswerView {
  /** Whether hints of SVCB and HTTPS records teach; for the reads to come. */
  learnsHints = true
  id = 0
  /** The 16 bits behind the id, as they came. */
  flags = 0
  /** All 12 bits: the header's and those of OPT (RFC 6891 6.1.3). */
  rcode = 0
  truncated = false
  qdcount = 0
  /** One question, and it is the one asked: labels without case, type and class (F1). */
  questionMatches = false
  /** What kept the whole answer from teaching, if it was the chain. */
  chainFault: ChainFault = 'none'
  /** CNAMEs followed; 0 when nothing was to be learned. */
  links = 0
  /** Least TTL of the CNAMEs followed, seconds; 0xffffffff without any. */
  chainTtl = 0xffffffff
  readonly #taught = new AddressSet()
  readonly #records = new ChainRecords()
  readonly #chain = new Chain()
  readonly #service = new ServiceParams()
  readonly #name = new Uint8Array(NAME_OCTETS_MAX)
  /** The two octets of the last owner that was nothing but a pointer, or -1, and the hash of its name; 0 for the question's. */
  #pointer = -1
  #pointerHash = 0

  /** Addresses taught, each once. */
  get count(): number {
    return this.#taught.count
  }

  /** 4 or 6, of address i. */
  get families(): Uint8Array {
    return this.#taught.families
  }

  /** Octets of address i from 16 * i; IPv4 in the first 4, zeros behind. */
  get octets(): Uint8Array {
    return this.#taught.octets
  }

  /** Seconds: the least of the CNAMEs up to the owner and of the records; top bit set counts as 0; not clamped. */
  get ttls(): Uint32Array {
    return this.#taught.ttls
  }

  /** Octets from the start of the message to the first record that carries address i. */
  get recordOffsets(): Uint16Array {
    return this.#taught.recordOffsets
  }

  /** Which name of the chain owns address i: 0 is the question, `links` at most. */
  get owners(): Uint8Array {
    return this.#taught.owners
  }

  /** Name `link` of the chain (1 to `links`), wire octets in lower case from 0. */
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
    if (this.#walk(buf, offset, end, question) !== end) return 'malformed'
    if (this.#mayTeach(question)) this.#learn(buf, offset, end)
    return 'ok'
  }

  #reset(): void {
    this.id = this.flags = this.rcode = this.qdcount = 0
    this.truncated = this.questionMatches = false
    this.chainFault = 'none'
    this.links = 0
    this.chainTtl = 0xffffffff
    this.#taught.clear()
    this.#records.count = 0
    this.#pointer = -1
  }

  /** The offset behind the last record, or a fault. */
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
    // A pointer that was followed from further up leads to the same place, and is as sound.
    const known = at + 2 <= end && u16(buf, at) === this.#pointer
    const fixed = known ? at + 2 : skipName(buf, start, end, at)
    if (fixed < 0) return fixed
    const data = fixed + RECORD_FIXED_OCTETS
    if (data > end) return FAULT_BOUNDS
    const next = data + u16(buf, fixed + 8)
    if (next > end) return FAULT_BOUNDS
    const type = u16(buf, fixed)
    // Wherever an OPT stands and however many there are: a higher RCODE in one of them is an error.
    if (type === TYPE_OPT) this.rcode |= buf[fixed + 4]! << 4
    if (!answer || u16(buf, fixed + 2) !== CLASS_IN) return next
    if (type === TYPE_CNAME && skipName(buf, start, end, data) !== next) return FAULT_BOUNDS
    if (!this.#isKept(type, buf, data, next)) return next
    const pointer = fixed - at === 2 ? u16(buf, at) : 0
    const owner = known ? this.#pointerHash : this.#hash(buf, start, end, at, pointer)
    // RFC 2181 8: a TTL with the top bit set is 0.
    const ttl = buf[fixed + 4]! > 0x7f ? 0 : u32(buf, fixed + 4)
    this.#records.add(type, owner, pointer, at, data, ttl)
    return next
  }

  /** Whether a record may be a link of the chain or teach. */
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

  /** 'class IN' of docs/spec/semantics 4 is read as both: that of the question and that of the record. */
  #mayTeach(question: Question): boolean {
    return (
      this.questionMatches &&
      (this.flags & (FLAG_QR | MASK_OPCODE)) === FLAG_QR &&
      this.rcode === RCODE_NOERROR &&
      question.qclass === CLASS_IN &&
      this.#records.count > 0
    )
  }

  #learn(buf: Uint8Array, start: number, end: number): void {
    const records = this.#records
    const chain = this.#chain
    this.chainFault = chain.follow(buf, start, end, records)
    if (this.chainFault !== 'none') return
    this.links = chain.count - 1
    this.chainTtl = chain.ttls[this.links]!
    for (let i = 0; i < records.count; i++) {
      const type = records.types[i]!
      if (type === TYPE_CNAME) continue
      const owner = chain.find(buf, start, end, records, i)
      if (owner < 0) continue
      const ttl = Math.min(chain.ttls[owner]!, records.ttls[i]!)
      const data = records.datas[i]!
      const record = records.offsets[i]! - start
      if (type === TYPE_A) this.#taught.add(4, buf, data, ttl, record, owner)
      else if (type === TYPE_AAAA) this.#taught.add(6, buf, data, ttl, record, owner)
      else this.#learnHints(buf, data, ttl, record, owner)
    }
  }

  /** RFC 9460 7.3. The record was read before and has hints. */
  #learnHints(buf: Uint8Array, data: number, ttl: number, record: number, owner: number): void {
    const service = this.#service
    service.read(buf, data, data + u16(buf, data - 2))
    for (let at = 0; at < service.ipv4Octets; at += 4) {
      this.#taught.add(4, buf, service.ipv4At + at, ttl, record, owner)
    }
    for (let at = 0; at < service.ipv6Octets; at += 16) {
      this.#taught.add(6, buf, service.ipv6At + at, ttl, record, owner)
    }
  }
}

/** Whether the octets at `at` are the question's name, its labels compared without case. */
function startsWithName(buf: Uint8Array, end: number, at: number, question: Question): boolean {
  const { name, nameLength } = question
  if (at + nameLength > end) return false
  // Lengths of labels are below 64, which lowering leaves alone, and no pointer equals one.
  for (let i = 0; i < nameLength; i++) if (LOWER[buf[at + i]!]! !== name[i]!) return false
  return true
}
