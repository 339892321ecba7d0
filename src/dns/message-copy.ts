// A message that is written from another one, some of whose octets are left out. Names keep their meaning: what a pointer
// leads to has moved, or stood in what was left out and is then written where it is first needed. Everything else is
// copied as it is. Filled from the front to the back by answer-strip.ts; one is used again and again.
//
// Always: names were checked by `skipName` before, so that their pointers go backwards. A message of which nothing is left
// out is written with the same octets. `isFull`: the message became longer than one can be, and is good for nothing.
// Cost: a write an octet, one more a label for where it went; 192 KiB.

import { HEADER_OCTETS, MESSAGE_OCTETS_MAX, putU16, u16 } from './wire.ts'

/** The two top bits of a pointer; what they leave is the offset (RFC 1035 4.1.4). */
const POINTER = 0xc000
const POINTER_OFFSET_MAX = 0x3fff

export class MessageCopy {
  readonly octets = new Uint8Array(MESSAGE_OCTETS_MAX)
  length = 0
  isFull = false
  /** Where labels and pointers of names went, by their offset in the source; 0: nowhere that a pointer can lead to. */
  readonly #places = new Uint16Array(MESSAGE_OCTETS_MAX)
  #buf: Uint8Array = new Uint8Array(0)
  #start = 0

  /** Begins a copy of the message of `length` octets at `start` with its header. */
  begin(buf: Uint8Array, start: number, length: number): void {
    this.#buf = buf
    this.#start = start
    this.length = 0
    this.isFull = false
    this.#places.fill(0, 0, length)
    this.copy(start, start + HEADER_OCTETS)
  }

  /** Copies octets [at, end) of the source. */
  copy(at: number, end: number): void {
    if (this.length + end - at > MESSAGE_OCTETS_MAX) {
      this.isFull = true
      return
    }
    for (let i = at; i < end; i++) this.octets[this.length++] = this.#buf[i]!
  }

  /** Copies the name at `at`. */
  copyName(at: number): void {
    const buf = this.#buf
    for (;;) {
      const from = at - this.#start
      const place = this.#places[from]!
      if (place !== 0) return this.put16(POINTER | place)
      if (this.length <= POINTER_OFFSET_MAX) this.#places[from] = this.length
      const octet = buf[at]!
      if (octet >= 0xc0) {
        at = this.#start + (u16(buf, at) & POINTER_OFFSET_MAX)
        continue
      }
      this.copy(at, at + octet + 1)
      if (octet === 0 || this.isFull) return
      at += octet + 1
    }
  }

  put16(value: number): void {
    if (this.length + 2 > MESSAGE_OCTETS_MAX) {
      this.isFull = true
      return
    }
    putU16(this.octets, this.length, value)
    this.length += 2
  }
}
