// The names that an answer reaches from its question by CNAMEs (RFC 1034 3.6.2), and the records that may be
// links or ends of that chain. `ChainRecords` is filled by AnswerView's walk; `Chain.follow` reads it, in any
// order of records, and `Chain.find` says which of the chain's names owns a record.
//
// Always: `count` is 1 (the question alone) to 17. A loop, two different CNAMEs at one name of the chain, or a
// 17th link spoil the whole answer, also the records before the fault: what such a server says is not believed.
// Cost: a pass over the records' hashes for each link, and each record's name read again once. Hashes use a
// secret multiplier, so that no sender can make names collide on purpose.

import { NAME_OCTETS_MAX, nameLength } from '../core/name.ts'
import { TYPE_CNAME } from './codes.ts'
import type { Question } from './query.ts'
import { readName, RECORD_FIXED_OCTETS, sameOctets, skipName } from './wire.ts'

/** SEMANTICS 4. */
export const CHAIN_LINKS_MAX = 16
/** The smallest record kept, a CNAME from root to root, has 12 octets: (65,535 - 12 - 5) / 12. */
const RECORDS_MAX = 5459
/** No link yet: every TTL is lower. */
const TTL_NONE = 0xffffffff

/** What is wrong with the chain, if anything. */
export type ChainFault = 'none' | 'loop' | 'fork' | 'long'

/** Records of the answer section, class IN, type CNAME, A or AAAA, in order of appearance. */
export class ChainRecords {
  count = 0
  readonly types = new Uint8Array(RECORDS_MAX)
  /** `hashName` of the owner. */
  readonly owners = new Uint32Array(RECORDS_MAX)
  /** Offset of the record in the buffer that was read. */
  readonly offsets = new Uint32Array(RECORDS_MAX)
  /** Seconds; a TTL with the top bit set is 0 already. */
  readonly ttls = new Uint32Array(RECORDS_MAX)

  add(type: number, owner: number, offset: number, ttl: number): void {
    const i = this.count++
    this.types[i] = type
    this.owners[i] = owner
    this.offsets[i] = offset
    this.ttls[i] = ttl
  }
}

export class Chain {
  /** Names so far: the question and one a link. */
  count = 0
  /** Least TTL of the links from the question to name i; `0xffffffff` for the question itself. */
  readonly ttls = new Uint32Array(CHAIN_LINKS_MAX + 1)
  readonly #names = new Uint8Array((CHAIN_LINKS_MAX + 1) * NAME_OCTETS_MAX)
  readonly #lengths = new Uint8Array(CHAIN_LINKS_MAX + 1)
  readonly #hashes = new Uint32Array(CHAIN_LINKS_MAX + 1)
  readonly #multiplier: number
  readonly #scratch = new Uint8Array(NAME_OCTETS_MAX)
  readonly #target = new Uint8Array(NAME_OCTETS_MAX)
  #targetLength = 0
  #linkTtl = TTL_NONE

  /** `seed`: 32 secret random bits. */
  constructor(seed: number) {
    this.#multiplier = (Math.imul(seed, 0x9e3779b1) ^ 0x01000193) | 1
  }

  /** A hash of a whole name in wire octets, lower case. */
  hash(name: Uint8Array): number {
    const length = nameLength(name)
    let hash = length
    for (let i = 0; i < length; i++) hash = Math.imul(hash ^ name[i]!, this.#multiplier)
    return (hash ^ (hash >>> 15)) >>> 0
  }

  /** Builds the chain of `question` from the records that a walk of buf[start..end) found and checked. */
  follow(
    buf: Uint8Array,
    start: number,
    end: number,
    records: ChainRecords,
    question: Question,
  ): ChainFault {
    this.count = 0
    this.#push(question.name, question.nameLength, TTL_NONE)
    for (;;) {
      const links = this.#link(buf, start, end, records)
      if (links === 0) return 'none'
      if (links > 1) return 'fork'
      if (this.#knows(this.#target, this.#targetLength)) return 'loop'
      if (this.count > CHAIN_LINKS_MAX) return 'long'
      const ttl = Math.min(this.ttls[this.count - 1]!, this.#linkTtl)
      this.#push(this.#target, this.#targetLength, ttl)
    }
  }

  /** Which name of the chain owns record `index`, or -1. */
  find(buf: Uint8Array, start: number, end: number, records: ChainRecords, index: number): number {
    const hash = records.owners[index]!
    for (let i = 0; i < this.count; i++) {
      if (this.#hashes[i] === hash && this.#owns(i, buf, start, end, records.offsets[index]!))
        return i
    }
    return -1
  }

  /** Different targets of the last name's CNAMEs: 0, 1, or 2 for more; the first is in `#target`. */
  #link(buf: Uint8Array, start: number, end: number, records: ChainRecords): number {
    const last = this.count - 1
    let found = false
    for (let i = 0; i < records.count; i++) {
      const at = records.offsets[i]!
      if (records.types[i] !== TYPE_CNAME || records.owners[i] !== this.#hashes[last]) continue
      if (!this.#owns(last, buf, start, end, at)) continue
      const rdata = skipName(buf, start, end, at) + RECORD_FIXED_OCTETS
      readName(buf, start, end, rdata, this.#scratch)
      const length = nameLength(this.#scratch)
      if (!found) {
        found = true
        this.#target.set(this.#scratch)
        this.#targetLength = length
        this.#linkTtl = TTL_NONE
      } else if (!sameName(this.#scratch, length, 0, this.#target, this.#targetLength)) {
        return 2
      }
      this.#linkTtl = Math.min(this.#linkTtl, records.ttls[i]!)
    }
    return found ? 1 : 0
  }

  #owns(i: number, buf: Uint8Array, start: number, end: number, at: number): boolean {
    readName(buf, start, end, at, this.#scratch)
    const from = i * NAME_OCTETS_MAX
    return sameName(this.#names, this.#lengths[i]!, from, this.#scratch, nameLength(this.#scratch))
  }

  #knows(name: Uint8Array, length: number): boolean {
    for (let i = 0; i < this.count; i++) {
      if (sameName(this.#names, this.#lengths[i]!, i * NAME_OCTETS_MAX, name, length)) return true
    }
    return false
  }

  #push(name: Uint8Array, length: number, ttl: number): void {
    const i = this.count++
    const from = i * NAME_OCTETS_MAX
    for (let j = 0; j < length; j++) this.#names[from + j] = name[j]!
    this.#lengths[i] = length
    this.#hashes[i] = this.hash(name)
    this.ttls[i] = ttl
  }
}

function sameName(
  a: Uint8Array,
  aLength: number,
  aFrom: number,
  b: Uint8Array,
  bLength: number,
): boolean {
  return aLength === bLength && sameOctets(a, aFrom, b, 0, aLength)
}
