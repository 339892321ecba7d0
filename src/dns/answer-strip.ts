// AnswerStrip removes addresses from a message (`dns.svcb: strip`, `dns.guard: strip`, `dns.on-degraded: strip-addresses`;
// docs/spec/semantics 4). In every section it removes whole A and AAAA records, and the hints of SVCB and HTTPS records. All other
// octets stay the same, except counts, RDLENGTHs, pointers to names that moved, and the AD flag, which is cleared.
//
// A record set that lost a record is not the set that its zone signed. So AnswerStrip also removes the RRSIG records over its type
// (docs/spec/correctness S6), whether the query has DO or not. A client that validates then finds an unsigned set, and refuses it if
// the zone is signed. An SVCB or HTTPS record that cannot be read is removed whole, because a client could find addresses in it.
// Cost: one pass over the message, and a second pass that copies it if something is removed. Nothing is allocated.

import { CLASS_IN, FLAG_AD, TYPE_A, TYPE_AAAA, TYPE_HTTPS, TYPE_SVCB } from './codes.ts'
import { MessageCopy } from './message-copy.ts'
import { firstNameAt, namesIn } from './rdata-names.ts'
import {
  isUnwanted,
  KEEP,
  REMOVE,
  REWRITE,
  ServiceStrip,
  type UnwantedAddresses,
} from './svcb-strip.ts'
import {
  HEADER_OCTETS,
  MESSAGE_OCTETS_MAX,
  putU16,
  RECORD_FIXED_OCTETS,
  skipName,
  skipQuestion,
  u16,
} from './wire.ts'

/** 'same': nothing was removed. 'gone': `octets` has the new message. 'bad': the message cannot be read, or would be too long. */
export type StripResult = 'same' | 'gone' | 'bad'

const TYPE_RRSIG = 46
/** Bits for the types whose records lost addresses. */
const LOST_A = 1
const LOST_AAAA = 2
const LOST_SVCB = 4
const LOST_HTTPS = 8

export class AnswerStrip {
  readonly counters = {
    /** A and AAAA records that were removed. */
    addresses: 0,
    /** Addresses that were removed from hints. */
    hints: 0,
    /** SVCB and HTTPS records that could not be read and were removed. */
    unreadable: 0,
    signatures: 0,
  }
  readonly #copy = new MessageCopy()
  readonly #service = new ServiceStrip()
  #buf: Uint8Array = new Uint8Array(0)
  #unwanted: UnwantedAddresses | undefined
  #lost = 0
  /** True if a record that stays has a name that cannot be read, so the record cannot be copied to another offset. */
  #isBad = false

  /** After `strip` returned 'gone', the new message: `length` octets from offset 0. It is valid until the next `strip`. */
  get octets(): Uint8Array {
    return this.#copy.octets
  }

  get length(): number {
    return this.#copy.length
  }

  /** Removes the unwanted addresses from the message of `length` octets at `start`. `stripsHints`: also removes every hint. */
  strip(
    buf: Uint8Array,
    start: number,
    length: number,
    stripsHints: boolean,
    unwanted: UnwantedAddresses | undefined,
  ): StripResult {
    if (length < HEADER_OCTETS || length > MESSAGE_OCTETS_MAX) return 'bad'
    this.#buf = buf
    this.#unwanted = unwanted
    this.#service.begin(buf, stripsHints, unwanted)
    this.#lost = 0
    this.#isBad = false
    const end = start + length
    if (!this.#look(start, end)) return 'bad'
    if (this.#lost === 0) return 'same'
    this.#write(start, end, length)
    return this.#isBad || this.#copy.isFull ? 'bad' : 'gone'
  }

  /** Returns true if the message can be read. Sets `#lost` to the types that will lose a record or a hint. */
  #look(start: number, end: number): boolean {
    const buf = this.#buf
    let at = start + HEADER_OCTETS
    for (let left = u16(buf, start + 4); left > 0; left--) {
      at = skipQuestion(buf, start, end, at)
      if (at < 0) return false
    }
    let left = u16(buf, start + 6) + u16(buf, start + 8) + u16(buf, start + 10)
    for (; left > 0; left--) {
      const fixed = skipName(buf, start, end, at)
      const data = fixed + RECORD_FIXED_OCTETS
      if (fixed < 0 || data > end) return false
      at = data + u16(buf, fixed + 8)
      if (at > end) return false
      if (this.#fateOf(fixed, data, at) !== KEEP) this.#lost |= lostOf(u16(buf, fixed))
    }
    return at === end
  }

  #write(start: number, end: number, length: number): void {
    const buf = this.#buf
    const copy = this.#copy
    copy.begin(buf, start, length)
    putU16(copy.octets, 2, u16(buf, start + 2) & ~FLAG_AD)
    let at = start + HEADER_OCTETS
    for (let left = u16(buf, start + 4); left > 0; left--) {
      copy.copyName(at)
      const next = skipQuestion(buf, start, end, at)
      copy.copy(next - 4, next)
      at = next
    }
    for (let count = 6; count <= 10; count += 2) {
      let kept = 0
      for (let left = u16(buf, start + count); left > 0; left--) {
        const fixed = skipName(buf, start, end, at)
        const data = fixed + RECORD_FIXED_OCTETS
        const next = data + u16(buf, fixed + 8)
        if (this.#writeRecord(start, at, fixed, next)) kept++
        at = next
      }
      putU16(copy.octets, count, kept)
    }
  }

  /** Writes a record to the copy. Returns false if the record is removed. */
  #writeRecord(start: number, at: number, fixed: number, next: number): boolean {
    const buf = this.#buf
    const copy = this.#copy
    const type = u16(buf, fixed)
    const data = fixed + RECORD_FIXED_OCTETS
    const fate = this.#fateOf(fixed, data, next)
    if (fate === REMOVE || this.#isStaleSignature(type, data, next)) {
      this.#count(type)
      return false
    }
    copy.copyName(at)
    copy.copy(fixed, data)
    const before = copy.length
    if (fate === REWRITE) this.counters.hints += this.#service.write(copy, data, next)
    else this.#writeData(start, type, data, next)
    if (!copy.isFull) putU16(copy.octets, before - 2, copy.length - before)
    return true
  }

  #writeData(start: number, type: number, data: number, next: number): void {
    const copy = this.#copy
    const names = namesIn(type)
    let at = names === 0 ? next : Math.min(firstNameAt(type, this.#buf, data, next), next)
    copy.copy(data, at)
    if (at === next) return
    for (let i = 0; i < names; i++) {
      const end = skipName(this.#buf, start, next, at)
      if (end < 0) {
        this.#isBad = true
        return
      }
      copy.copyName(at)
      at = end
    }
    copy.copy(at, next)
  }

  #fateOf(fixed: number, data: number, next: number): number {
    const buf = this.#buf
    if (u16(buf, fixed + 2) !== CLASS_IN) return KEEP
    switch (u16(buf, fixed)) {
      case TYPE_A:
        return next - data === 4 && isUnwanted(this.#unwanted, 4, buf, data) ? REMOVE : KEEP
      case TYPE_AAAA:
        return next - data === 16 && isUnwanted(this.#unwanted, 6, buf, data) ? REMOVE : KEEP
      case TYPE_SVCB:
      case TYPE_HTTPS:
        return this.#service.fateOf(data, next)
      default:
        return KEEP
    }
  }

  /** Returns true for a signature over a type that lost addresses. Its first two octets are the covered type (RFC 4034 3.1.1). */
  #isStaleSignature(type: number, data: number, next: number): boolean {
    if (type !== TYPE_RRSIG || next - data < 2) return false
    return (lostOf(u16(this.#buf, data)) & this.#lost) !== 0
  }

  #count(type: number): void {
    if (type === TYPE_RRSIG) this.counters.signatures++
    else if (type === TYPE_A || type === TYPE_AAAA) this.counters.addresses++
    else this.counters.unreadable++
  }
}

function lostOf(type: number): number {
  switch (type) {
    case TYPE_A:
      return LOST_A
    case TYPE_AAAA:
      return LOST_AAAA
    case TYPE_SVCB:
      return LOST_SVCB
    case TYPE_HTTPS:
      return LOST_HTTPS
    default:
      return 0
  }
}
