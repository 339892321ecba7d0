// Message encodes netlink messages of nf_tables. A batch grows in one buffer that is used again, so an element costs no object.
// The encoding functions write the batch, and the kernel applies it as one transaction (linux/netfilter/nfnetlink.h).
//
// - message: length u32, type u16, flags u16, sequence u32, port u32 (host order); family u8, version u8, res_id u16
// - attribute: length u16, type u16 (host order), payload, padded to 4; numbers in payloads are in network order
//
// Sequence numbers count the messages of a batch from 1, so a result names its message.

import { endianness } from 'node:os'

const LITTLE = endianness() === 'LE'
const NESTED = 0x8000
const SUBSYSTEM = 10 << 8
const BATCH_BEGIN = 0x10
const BATCH_END = 0x11
const HEADER = 20

export const REQUEST = 0x1
export const ACK = 0x4
export const DUMP = 0x300
export const CREATE = 0x400
export const APPEND = 0x800

export const FAMILY_ANY = 0
export const FAMILY_INET = 1

/** An attribute stays below this size, because its length field has 16 bits. */
export const ATTRIBUTE_MAX = 60_000

export class Message {
  #octets: Uint8Array<ArrayBuffer>
  /** Views of the same octets. */
  #view: DataView
  #text: Buffer
  #at = 0
  #start = 0
  #sequence = 0
  #batches = 0

  constructor(capacity = 65_536) {
    this.#octets = new Uint8Array(capacity)
    this.#view = new DataView(this.#octets.buffer)
    this.#text = Buffer.from(this.#octets.buffer)
  }

  /** The buffer, of which the first `size` octets are used. Valid until the next write. */
  get octets(): Uint8Array {
    return this.#octets
  }

  get size(): number {
    return this.#at
  }

  /** The sequence number of the message that was begun last. */
  get sequence(): number {
    return this.#sequence
  }

  /** How many octets were written since an attribute or message began. */
  since(start: number): number {
    return this.#at - start
  }

  /** How many batches the buffer has. */
  get batches(): number {
    return this.#batches
  }

  clear(): void {
    this.#at = 0
    this.#sequence = 0
    this.#batches = 0
  }

  beginBatch(): void {
    this.clear()
    this.nextBatch()
  }

  /** Begins another batch, which the kernel receives after it has applied the batches before. Returns where the batch begins. */
  nextBatch(): number {
    const at = this.#header(BATCH_BEGIN, REQUEST, FAMILY_ANY, 10)
    this.end()
    this.#batches++
    return at
  }

  /** Removes the batch that was begun last, at `at`. */
  dropBatch(at: number): void {
    this.#at = at
    this.#batches--
  }

  /** Ends the batch. Its last message, which begins at `last`, requests an acknowledgement. */
  endBatch(last: number): void {
    this.#view.setUint16(last + 6, this.#view.getUint16(last + 6, LITTLE) | ACK, LITTLE)
    this.#header(BATCH_END, REQUEST, FAMILY_ANY, 10)
    this.end()
  }

  /** Begins a message of nf_tables. Returns where it begins. */
  begin(type: number, flags: number, family = FAMILY_INET): number {
    return this.#header(SUBSYSTEM | type, REQUEST | flags, family, 0)
  }

  /** Begins a message of another subsystem. `resource` is res_id of nfnetlink.h. */
  beginOther(type: number, flags: number, family: number, resource: number): number {
    return this.#header(type, REQUEST | flags, family, resource)
  }

  end(): void {
    this.#view.setUint32(this.#start, this.#at - this.#start, LITTLE)
  }

  u8(type: number, value: number): void {
    const at = this.#attribute(type, 1)
    this.#octets[at] = value
  }

  u16(type: number, value: number): void {
    const at = this.#attribute(type, 2)
    this.#view.setUint16(at, value)
  }

  u32(type: number, value: number): void {
    const at = this.#attribute(type, 4)
    this.#view.setUint32(at, value)
  }

  u64(type: number, value: number): void {
    const at = this.#attribute(type, 8)
    this.#view.setUint32(at, Math.floor(value / 2 ** 32))
    this.#view.setUint32(at + 4, value >>> 0)
  }

  /** Writes ASCII with the final zero that the kernel requires. */
  text(type: number, value: string): void {
    const at = this.#attribute(type, value.length + 1)
    this.#text.write(value, at, 'latin1')
  }

  bytes(type: number, value: Uint8Array): void {
    const at = this.#attribute(type, value.length)
    this.#octets.set(value, at)
  }

  /** Writes a payload of `size` zero octets, which the `put…` methods fill in. Returns where the payload is. */
  space(type: number, size: number): number {
    const at = this.#attribute(type, size)
    this.#octets.fill(0, at, at + size)
    return at
  }

  /** Writes a number in the machine's order, as registers and marks need it. */
  putWord(at: number, value: number): void {
    this.#view.setUint32(at, value, LITTLE)
  }

  putShort(at: number, value: number): void {
    this.#view.setUint16(at, value)
  }

  putByte(at: number, value: number): void {
    this.#octets[at] = value
  }

  put(at: number, from: Uint8Array, offset: number, length: number): void {
    for (let i = 0; i < length; i++) this.#octets[at + i] = from[offset + i]!
  }

  /** Copies octets that are already in this message to its end. Returns where the copy is. */
  repeat(from: number, size: number): number {
    const at = this.#at
    this.#room(size)
    this.#octets.copyWithin(at, from, from + size)
    this.#at = at + size
    return at
  }

  /** Begins an attribute that contains attributes. Returns where it begins. */
  open(type: number): number {
    const at = this.#at
    this.#room(4)
    this.#view.setUint16(at + 2, type | NESTED, LITTLE)
    this.#at += 4
    return at
  }

  close(start: number): void {
    this.#view.setUint16(start, this.#at - start, LITTLE)
  }

  #header(type: number, flags: number, family: number, resource: number): number {
    this.#room(HEADER)
    const at = (this.#start = this.#at)
    this.#view.setUint32(at, 0)
    this.#view.setUint16(at + 4, type, LITTLE)
    this.#view.setUint16(at + 6, flags, LITTLE)
    this.#view.setUint32(at + 8, ++this.#sequence, LITTLE)
    this.#view.setUint32(at + 12, 0)
    this.#octets[at + 16] = family
    this.#octets[at + 17] = 0
    this.#view.setUint16(at + 18, resource)
    this.#at = at + HEADER
    return at
  }

  /** Returns where the caller must write the payload. The padding is zero. */
  #attribute(type: number, size: number): number {
    const at = this.#at
    const whole = (size + 7) & ~3
    this.#room(whole)
    this.#view.setUint32(at + whole - 4, 0)
    this.#view.setUint16(at, size + 4, LITTLE)
    this.#view.setUint16(at + 2, type, LITTLE)
    this.#at = at + whole
    return at + 4
  }

  #room(size: number): void {
    if (this.#at + size <= this.#octets.length) return
    const more = new Uint8Array(Math.max(this.#octets.length * 2, this.#at + size))
    more.set(this.#octets.subarray(0, this.#at))
    this.#octets = more
    this.#view = new DataView(more.buffer)
    this.#text = Buffer.from(more.buffer)
  }
}
