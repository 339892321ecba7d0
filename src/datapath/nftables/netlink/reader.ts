// Reader reads netlink messages of a buffer and attributes of a message. It copies only what the caller asks for.

import { endianness } from 'node:os'

const LITTLE = endianness() === 'LE'
const HEADER = 16
/** Where the body begins, after the header, family, version and res_id. */
export const BODY = 20
const TYPE_MASK = 0x3fff

export const ERROR = 2
export const DONE = 3
/** The table changed during the listing, so the listing must be repeated. */
export const INTERRUPTED = 0x10

export class Reader {
  readonly octets: Uint8Array
  readonly #view: DataView

  constructor(octets: Uint8Array) {
    this.octets = octets
    this.#view = new DataView(octets.buffer, octets.byteOffset, octets.length)
  }

  /** Calls `visit` for each message in the first `size` octets. */
  messages(
    size: number,
    visit: (type: number, flags: number, from: number, to: number) => void,
  ): void {
    let at = 0
    while (at + HEADER <= size) {
      const length = this.#view.getUint32(at, LITTLE)
      if (length < HEADER || at + length > size) return
      const flags = this.#view.getUint16(at + 6, LITTLE)
      visit(this.#view.getUint16(at + 4, LITTLE), flags, at, at + length)
      at += (length + 3) & ~3
    }
  }

  /** Calls `visit` for each attribute between two places, with the place of its payload. */
  attributes(
    from: number,
    to: number,
    visit: (type: number, from: number, to: number) => void,
  ): void {
    let at = from
    while (at + 4 <= to) {
      const length = this.#view.getUint16(at, LITTLE)
      if (length < 4 || at + length > to) return
      visit(this.#view.getUint16(at + 2, LITTLE) & TYPE_MASK, at + 4, at + length)
      at += (length + 3) & ~3
    }
  }

  /** Where the payload of the first attribute of a type begins, or -1 if there is none. */
  find(from: number, to: number, type: number): number {
    let found = -1
    this.attributes(from, to, (each, at) => {
      if (each === type && found < 0) found = at
    })
    return found
  }

  /** Reads a number in the machine's order. */
  word(at: number): number {
    return this.#view.getUint32(at, LITTLE)
  }

  signed(at: number): number {
    return this.#view.getInt32(at, LITTLE)
  }

  /** The methods below read numbers in network order. */
  u16(at: number): number {
    return this.#view.getUint16(at)
  }

  u32(at: number): number {
    return this.#view.getUint32(at)
  }

  u64(at: number): number {
    return this.#view.getUint32(at) * 2 ** 32 + this.#view.getUint32(at + 4)
  }

  text(from: number, to: number): string {
    let end = from
    while (end < to && this.octets[end] !== 0) end++
    return String.fromCharCode(...this.octets.subarray(from, end))
  }
}
