// MessageCopy copies a message without some of its octets. Names keep their meaning: a pointer is changed if its target has moved. If
// its target was left out, the name is written in full where it is first needed. All other octets stay the same. answer-strip.ts
// fills one object from front to back for each message.
//
// `skipName` must have checked the names, so their pointers lead backwards. A copy that leaves nothing out has the same octets.
// Cost: one write per octet, and one per DNS label for its new offset. The object takes 192 KiB.

import { HEADER_OCTETS, MESSAGE_OCTETS_MAX, putU16, u16 } from './wire.ts'

/** The two top bits of a pointer; the other bits are the offset (RFC 1035 4.1.4). */
const POINTER = 0xc000
const POINTER_OFFSET_MAX = 0x3fff

export class MessageCopy {
  readonly octets = new Uint8Array(MESSAGE_OCTETS_MAX)
  length = 0
  /** True if the copy is longer than a message can be. The copy must not be used then. */
  isFull = false
  /** The new offset of each DNS label and pointer, by its offset in the source; 0: no pointer can lead to it. */
  readonly #places = new Uint16Array(MESSAGE_OCTETS_MAX)
  #buf: Uint8Array = new Uint8Array(0)
  #start = 0

  /** Begins a copy of the message of `length` octets at `start`, and copies its header. */
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
