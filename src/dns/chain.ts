// The names that an answer reaches from its question by CNAMEs (RFC 1034 3.6.2), and the records that may be
// links or ends of that chain. `ChainRecords` is filled by AnswerView's walk; `Chain.follow` reads it, in any
// order of records, and `Chain.find` says which of the chain's names owns a record.
//
// Always: `count` is 1 (the question alone) to 17. A loop, two different CNAMEs at one name of the chain, or a
// 17th link spoil the whole answer, also the records before the fault: what such a server says is not believed.
// Cost: a pass over the records' hashes for each link, and a name read again once for each record that may be on
// the chain. Owners that are one pointer, which is nearly all of them, are compared as pointers: in one message
// equal pointers are equal names; so of an answer whose records all point at the question the name is neither copied nor
// hashed.

import { hashOctets } from '../core/tables/keyed-hash.ts'
import { NAME_OCTETS_MAX, nameLength } from '../core/name.ts'
import { TYPE_CNAME } from './codes.ts'
import type { Question } from './query.ts'
import { HEADER_OCTETS, readName, sameOctets } from './wire.ts'

/** docs/spec/semantics 4. */
export const CHAIN_LINKS_MAX = 16
/** The smallest record kept, a CNAME from root to root, has 12 octets: (65,535 - 12 - 5) / 12. */
const RECORDS_MAX = 5459
/** The two top bits of a pointer; what they leave is the offset. */
const POINTER = 0xc000
const POINTER_OFFSET_MAX = 0x3fff
/** A pointer to the name of the first question. */
export const QUESTION_POINTER = POINTER | HEADER_OCTETS
/** No link yet: every TTL is lower. */
const TTL_NONE = 0xffffffff

/** What is wrong with the chain, if anything. */
export type ChainFault = 'none' | 'loop' | 'fork' | 'long'

/** Records of the answer section, class IN, type CNAME, A, AAAA or one with hints, in order of appearance. */
export class ChainRecords {
  count = 0
  readonly types = new Uint8Array(RECORDS_MAX)
  /** `hashOctets` of the owner. */
  readonly owners = new Uint32Array(RECORDS_MAX)
  /** The two octets of the owner when it is nothing but a pointer, else 0. */
  readonly pointers = new Uint16Array(RECORDS_MAX)
  /** Offset of the record in the buffer that was read. */
  readonly offsets = new Uint32Array(RECORDS_MAX)
  /** Offset of its RDATA. */
  readonly datas = new Uint32Array(RECORDS_MAX)
  /** Seconds; a TTL with the top bit set is 0 already. */
  readonly ttls = new Uint32Array(RECORDS_MAX)

  add(
    type: number,
    owner: number,
    pointer: number,
    offset: number,
    data: number,
    ttl: number,
  ): void {
    const i = this.count++
    this.types[i] = type
    this.owners[i] = owner
    this.pointers[i] = pointer
    this.offsets[i] = offset
    this.datas[i] = data
    this.ttls[i] = ttl
  }
}

export class Chain {
  /** Names so far: the question and one a link. */
  count = 0
  /** Least TTL of the links from the question to name i; `0xffffffff` for the question itself. */
  readonly ttls = new Uint32Array(CHAIN_LINKS_MAX + 1)
  readonly #names = new Uint8Array((CHAIN_LINKS_MAX + 1) * NAME_OCTETS_MAX)
  /** Of name i the octets in lower case from 0; of the question only once it was compared by name. */
  readonly names: readonly Uint8Array[] = Array.from({ length: CHAIN_LINKS_MAX + 1 }, (_, i) =>
    this.#names.subarray(i * NAME_OCTETS_MAX, (i + 1) * NAME_OCTETS_MAX),
  )
  readonly #hashes = new Uint32Array(CHAIN_LINKS_MAX + 1)
  /** A pointer that is known to lead to name i, or 0. */
  readonly #pointers = new Uint16Array(CHAIN_LINKS_MAX + 1)
  readonly #scratch = new Uint8Array(NAME_OCTETS_MAX)
  readonly #target = new Uint8Array(NAME_OCTETS_MAX)
  /** Of name 0, which is copied and hashed when a record is compared with it by name. */
  #question: Uint8Array | undefined
  /** Of the links found last: where the target stands, as a pointer, and their least TTL. */
  #targetPointer = 0
  #linkTtl = TTL_NONE

  /** Starts a chain at the question, which stands behind the header of the message and holds until the last `find`. */
  begin(question: Question): void {
    this.count = 1
    this.#pointers[0] = QUESTION_POINTER
    this.ttls[0] = TTL_NONE
    this.#question = question.name
  }

  /** Adds the links, from the records that a walk of buf[start..end) found and checked. */
  follow(buf: Uint8Array, start: number, end: number, records: ChainRecords): ChainFault {
    for (;;) {
      const links = this.#link(buf, start, end, records)
      if (links === 0) return 'none'
      if (links > 1) return 'fork'
      if (this.#knows(this.#target)) return 'loop'
      if (this.count > CHAIN_LINKS_MAX) return 'long'
      const ttl = Math.min(this.ttls[this.count - 1]!, this.#linkTtl)
      this.#push(this.#target, this.#targetPointer, ttl)
    }
  }

  /** Which name of the chain owns record `index`, or -1. */
  find(buf: Uint8Array, start: number, end: number, records: ChainRecords, index: number): number {
    for (let i = 0; i < this.count; i++) {
      if (this.#owns(i, buf, start, end, records, index)) return i
    }
    return -1
  }

  /** Different targets of the last name's CNAMEs: 0, 1, or 2 for more; the first is in `#target`. */
  #link(buf: Uint8Array, start: number, end: number, records: ChainRecords): number {
    const last = this.count - 1
    let found = false
    for (let i = 0; i < records.count; i++) {
      if (records.types[i] !== TYPE_CNAME) continue
      if (!this.#owns(last, buf, start, end, records, i)) continue
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

  #owns(
    i: number,
    buf: Uint8Array,
    start: number,
    end: number,
    records: ChainRecords,
    index: number,
  ): boolean {
    const pointer = records.pointers[index]!
    if (pointer !== 0 && pointer === this.#pointers[i]) return true
    // Such a record has no hash, and another record may have left its pointer for the question.
    if (i === 0 && pointer === QUESTION_POINTER) return true
    this.#fill()
    if (records.owners[index] !== this.#hashes[i]) return false
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

  /** Name 0 is in its place from here on. */
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

/** Names end at their zero label, so that equal octets up to there are equal names. */
function sameName(a: Uint8Array, from: number, b: Uint8Array): boolean {
  return sameOctets(a, from, b, 0, nameLength(b))
}
