// Chain holds the names that an answer reaches from its question by CNAMEs (RFC 1034 3.6.2). ChainRecords holds the records that can
// be links of this chain or have its addresses. AnswerView fills ChainRecords. `Chain.follow` reads the records in any order, and
// `Chain.find` tells which name of the chain owns a record.
//
// The chain has 1 name (only the question) to 17 names. A loop, a 17th link, or two different CNAMEs at one name are faults. After a
// fault, nothing is learned from the whole answer, because its server cannot be trusted.
// Cost: one pass over the records' hashes per link, and one more reading of each name that can be in the chain. Nearly all owners are
// only a pointer. They are compared as pointers, because equal pointers in one message are equal names. If all records of an answer
// point to the question, the question's name is not copied or hashed.

import { hashOctets } from '../core/tables/keyed-hash.ts'
import { NAME_OCTETS_MAX, nameLength } from '../core/name.ts'
import { TYPE_CNAME } from './codes.ts'
import type { Question } from './query.ts'
import { HEADER_OCTETS, readName, RECORD_FIXED_OCTETS, sameOctets, u16, u32 } from './wire.ts'

/** The largest number of CNAMEs in a chain (docs/spec/semantics 4). */
export const CHAIN_LINKS_MAX = 16
/** The largest number of kept records: the smallest, a CNAME from root to root, has 12 octets, so (65,535 - 12 - 5) / 12. */
const RECORDS_MAX = 5459
/** The two top bits of a pointer; the other bits are the offset. */
const POINTER = 0xc000
const POINTER_OFFSET_MAX = 0x3fff
/** A pointer to the name of the first question. */
export const QUESTION_POINTER = POINTER | HEADER_OCTETS
/** The TTL of a chain without links. Every TTL of a record is lower. */
const TTL_NONE = 0xffffffff

/** The fault of a chain. `fork`: two different CNAMEs at one name. `long`: more than CHAIN_LINKS_MAX links. */
export type ChainFault = 'none' | 'loop' | 'fork' | 'long'

const NOTHING = new Uint8Array(0)

/** The records of the answer section with class IN and type CNAME, A, AAAA, or SVCB or HTTPS with hints, in the message's order. */
export class ChainRecords {
  count = 0
  /** The message is buf[start..end). */
  buf: Uint8Array = NOTHING
  start = 0
  end = 0
  readonly types = new Uint8Array(RECORDS_MAX)
  /** `hashOctets` of the record's owner. */
  readonly owners = new Uint32Array(RECORDS_MAX)
  /** The two octets of the owner if it is only a pointer; otherwise 0. */
  readonly pointers = new Uint16Array(RECORDS_MAX)
  /** The offset of the record in `buf`. */
  readonly offsets = new Uint32Array(RECORDS_MAX)
  /** The offset of the record's RDATA in `buf`. */
  readonly datas = new Uint32Array(RECORDS_MAX)
  /** The TTL in seconds. */
  readonly ttls = new Uint32Array(RECORDS_MAX)

  begin(buf: Uint8Array, start: number, end: number): void {
    this.count = 0
    this.buf = buf
    this.start = start
    this.end = end
  }

  /** Drops the reference to the message. */
  forget(): void {
    this.buf = NOTHING
  }

  /** Adds the record at `at`. `fixed`: the offset of its type, after the owner. `owner`: the hash of the owner. */
  add(at: number, fixed: number, owner: number): void {
    const { buf } = this
    const i = this.count++
    this.types[i] = u16(buf, fixed)
    this.owners[i] = owner
    this.pointers[i] = fixed - at === 2 ? u16(buf, at) : 0
    this.offsets[i] = at
    this.datas[i] = fixed + RECORD_FIXED_OCTETS
    // RFC 2181 8: a TTL with the top bit set is 0.
    this.ttls[i] = buf[fixed + 4]! > 0x7f ? 0 : u32(buf, fixed + 4)
  }
}

export class Chain {
  /** The number of names: the question, and one per link. */
  count = 0
  /** The lowest TTL of the links from the question to name i, in seconds; 0xffffffff for the question itself. */
  readonly ttls = new Uint32Array(CHAIN_LINKS_MAX + 1)
  readonly #names = new Uint8Array((CHAIN_LINKS_MAX + 1) * NAME_OCTETS_MAX)
  /** Name i in lower-case wire format, from offset 0. Name 0, the question, is only there after a comparison has needed it. */
  readonly names: readonly Uint8Array[] = Array.from({ length: CHAIN_LINKS_MAX + 1 }, (_, i) =>
    this.#names.subarray(i * NAME_OCTETS_MAX, (i + 1) * NAME_OCTETS_MAX),
  )
  readonly #hashes = new Uint32Array(CHAIN_LINKS_MAX + 1)
  /** A pointer that leads to name i, or 0 if none is known. */
  readonly #pointers = new Uint16Array(CHAIN_LINKS_MAX + 1)
  readonly #scratch = new Uint8Array(NAME_OCTETS_MAX)
  readonly #target = new Uint8Array(NAME_OCTETS_MAX)
  /** The question's name, until a comparison copies and hashes it as name 0. */
  #question: Uint8Array | undefined
  /** A pointer to the target of the last found link, and the lowest TTL of its CNAMEs. */
  #targetPointer = 0
  #linkTtl = TTL_NONE

  /** Begins a chain at the question, which follows the header of the message. It must stay valid until the last `find`. */
  begin(question: Question): void {
    this.count = 1
    this.#pointers[0] = QUESTION_POINTER
    this.ttls[0] = TTL_NONE
    this.#question = question.name
  }

  /** Adds the links from the records, which AnswerView has checked. Returns the fault of the chain. */
  follow(records: ChainRecords): ChainFault {
    for (;;) {
      const links = this.#link(records)
      if (links === 0) return 'none'
      if (links > 1) return 'fork'
      if (this.#knows(this.#target)) return 'loop'
      if (this.count > CHAIN_LINKS_MAX) return 'long'
      const ttl = Math.min(this.ttls[this.count - 1]!, this.#linkTtl)
      this.#push(this.#target, this.#targetPointer, ttl)
    }
  }

  /** Returns the number of the name in the chain that owns record `index`, or -1. */
  find(records: ChainRecords, index: number): number {
    for (let i = 0; i < this.count; i++) if (this.#owns(i, records, index)) return i
    return -1
  }

  /** Returns the number of different targets of the last name's CNAMEs: 0, 1, or 2 for more. The first target is in `#target`. */
  #link(records: ChainRecords): number {
    const { buf, start, end } = records
    const last = this.count - 1
    let found = false
    for (let i = 0; i < records.count; i++) {
      if (records.types[i] !== TYPE_CNAME) continue
      if (!this.#owns(last, records, i)) continue
      const data = records.datas[i]!
      const ttl = records.ttls[i]!
      readName(buf, start, end, data, found ? this.#scratch : this.#target)
      if (!found) {
        found = true
        this.#targetPointer = data - start <= POINTER_OFFSET_MAX ? POINTER | (data - start) : 0
        this.#linkTtl = ttl
      } else if (!sameName(this.#target, 0, this.#scratch)) {
        return 2
      } else if (ttl < this.#linkTtl) {
        this.#linkTtl = ttl
      }
    }
    return found ? 1 : 0
  }

  /** Returns true if name `i` of the chain owns record `index`. */
  #owns(i: number, records: ChainRecords, index: number): boolean {
    const pointer = records.pointers[index]!
    if (pointer !== 0 && pointer === this.#pointers[i]) return true
    // A record with this pointer has no hash. `#pointers[0]` can have another record's pointer to the question's name.
    if (i === 0 && pointer === QUESTION_POINTER) return true
    this.#fill()
    if (records.owners[index] !== this.#hashes[i]) return false
    const { buf, start, end } = records
    readName(buf, start, end, records.offsets[index]!, this.#scratch)
    if (!sameName(this.#names, i * NAME_OCTETS_MAX, this.#scratch)) return false
    if (pointer !== 0) this.#pointers[i] = pointer
    return true
  }

  #knows(name: Uint8Array): boolean {
    this.#fill()
    for (let i = 0; i < this.count; i++) {
      if (sameName(this.#names, i * NAME_OCTETS_MAX, name)) return true
    }
    return false
  }

  #push(name: Uint8Array, pointer: number, ttl: number): void {
    const i = this.count++
    this.#put(i, name)
    this.#pointers[i] = pointer
    this.ttls[i] = ttl
  }

  /** Copies the question's name to name 0, if that was not done before. */
  #fill(): void {
    if (this.#question === undefined) return
    this.#put(0, this.#question)
    this.#question = undefined
  }

  #put(i: number, name: Uint8Array): void {
    const from = i * NAME_OCTETS_MAX
    const length = nameLength(name)
    for (let j = 0; j < length; j++) this.#names[from + j] = name[j]!
    this.#hashes[i] = hashOctets(name, 0, length)
  }
}

/** Returns true if the names are equal. A name ends at its zero octet, so names with equal octets up to it are equal. */
function sameName(a: Uint8Array, from: number, b: Uint8Array): boolean {
  return sameOctets(a, from, b, 0, nameLength(b))
}
