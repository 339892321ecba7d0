// RecordBuffer encodes records and holds them until they are written. They are in one piece of memory that has room for the head of a
// frame, so that a write copies nothing. These are the layouts of format version 1, little-endian; record-reader.ts reads them:
//
//   pair      1, family, octets of the name, 0, row u32, endpoint u32, until i32, grace u32, address, name
//   until     2, 0, 0, 0, row u32, until i32
//   gone      3, 0, 0, 0, row u32
//   number    4, 0, labels u16, number u32, and for each label its octets u16 and UTF-8
//   document  5, kind (1 endpoint, 2 source file), 1 when there is a text, 0, octets of key u32 and of text u32, key, text
//   end       6, 0, 0, 0, how many octets of its journal the image needs u32

import type { PairRecord, SavedDocument, SavedNumber } from '../../restore/state-port.ts'
import { FRAME_HEAD_OCTETS, FRAME_RECORDS_MAX, sealFrame } from './file-format.ts'
import type { Stamp } from '../stamp.ts'

export const RECORD = { pair: 1, until: 2, gone: 3, number: 4, document: 5, end: 6 } as const
export const DOCUMENT_KIND = { endpoint: 1, 'source-file': 2 } as const

/** At this length the buffer is full and should be written. */
const FULL_OCTETS = 256 * 2 ** 10
/** The usual size. One turn of the event loop can go beyond FULL_OCTETS, and there is room for what it usually adds. */
const BASE_OCTETS = FULL_OCTETS + 64 * 2 ** 10
const OCTETS_MAX = FRAME_HEAD_OCTETS + FRAME_RECORDS_MAX
const UINT16_MAX = 0xffff
const INT32_MAX = 2 ** 31 - 1
const INT32_MIN = -(2 ** 31)

export class RecordBuffer {
  #octets = Buffer.allocUnsafeSlow(BASE_OCTETS)
  #view = new DataView(this.#octets.buffer)
  #end = FRAME_HEAD_OCTETS

  /** How many octets of records are in the buffer. */
  get length(): number {
    return this.#end - FRAME_HEAD_OCTETS
  }

  get isFull(): boolean {
    return this.#end >= FULL_OCTETS
  }

  // The next five methods add a record. They return false, and add nothing, if the record is too large or there is no room for it.

  pair(record: PairRecord): boolean {
    const { family, nameLength, octets, addressAt, wire, nameAt } = record
    const addressOctets = family === 4 ? 4 : 16
    const at = this.#take(20 + addressOctets + nameLength)
    if (at < 0) return false
    const view = this.#view
    view.setUint32(at, RECORD.pair | (family << 8) | (nameLength << 16), true)
    view.setUint32(at + 4, record.row, true)
    view.setUint32(at + 8, record.endpoint, true)
    view.setInt32(at + 12, toInt32(record.until), true)
    view.setUint32(at + 16, Math.min(record.grace, INT32_MAX), true)
    const to = this.#octets
    let end = at + 20
    for (let i = 0; i < addressOctets; i++) to[end++] = octets[addressAt + i]!
    for (let i = 0; i < nameLength; i++) to[end++] = wire[nameAt + i]!
    return true
  }

  until(row: number, until: number): boolean {
    const at = this.#take(12)
    if (at < 0) return false
    this.#view.setUint32(at, RECORD.until, true)
    this.#view.setUint32(at + 4, row, true)
    this.#view.setInt32(at + 8, toInt32(until), true)
    return true
  }

  gone(row: number): boolean {
    const at = this.#take(8)
    if (at < 0) return false
    this.#view.setUint32(at, RECORD.gone, true)
    this.#view.setUint32(at + 4, row, true)
    return true
  }

  number({ id, labels }: SavedNumber): boolean {
    const lengths = labels.map((label) => Buffer.byteLength(label))
    if (labels.length > UINT16_MAX || lengths.some((length) => length > UINT16_MAX)) return false
    let at = this.#take(lengths.reduce((sum, length) => sum + 2 + length, 8))
    if (at < 0) return false
    this.#view.setUint32(at, RECORD.number | (labels.length << 16), true)
    this.#view.setUint32(at + 4, id, true)
    at += 8
    labels.forEach((label, i) => {
      const length = lengths[i] ?? 0
      this.#view.setUint16(at, length, true)
      this.#octets.write(label, at + 2)
      at += 2 + length
    })
    return true
  }

  document({ kind, key, text }: SavedDocument): boolean {
    const keyOctets = Buffer.byteLength(key)
    const textOctets = Buffer.byteLength(text ?? '')
    const at = this.#take(12 + keyOctets + textOctets)
    if (at < 0) return false
    const has = text === undefined ? 0 : 1
    this.#view.setUint32(at, RECORD.document | (DOCUMENT_KIND[kind] << 8) | (has << 16), true)
    this.#view.setUint32(at + 4, keyOctets, true)
    this.#view.setUint32(at + 8, textOctets, true)
    this.#octets.write(key, at + 12)
    this.#octets.write(text ?? '', at + 12 + keyOctets)
    return true
  }

  /** Adds the last record of an image. */
  imageEnd(journalOctets: number): boolean {
    const at = this.#take(8)
    if (at < 0) return false
    this.#view.setUint32(at, RECORD.end, true)
    this.#view.setUint32(at + 4, journalOctets, true)
    return true
  }

  /** Returns a frame with all records. It is valid until the next record is added. */
  seal(stamp: Stamp, seed: number): Uint8Array {
    const frame = this.#octets.subarray(0, this.#end)
    sealFrame(frame, stamp, seed)
    return frame
  }

  clear(): void {
    this.#end = FRAME_HEAD_OCTETS
    if (this.#octets.length > BASE_OCTETS) this.#allocate(BASE_OCTETS)
  }

  /** Makes room for a record of `octets` octets. Returns where it begins, or -1 if there is no room. */
  #take(octets: number): number {
    const at = this.#end
    const end = at + octets
    if (end > OCTETS_MAX) return -1
    if (end > this.#octets.length) {
      const before = this.#octets
      this.#allocate(Math.min(OCTETS_MAX, Math.max(end, 2 * before.length)))
      before.copy(this.#octets, 0, 0, at)
    }
    this.#end = end
    return at
  }

  #allocate(octets: number): void {
    this.#octets = Buffer.allocUnsafeSlow(octets)
    this.#view = new DataView(this.#octets.buffer)
  }
}

function toInt32(seconds: number): number {
  return Math.max(INT32_MIN, Math.min(INT32_MAX, Math.floor(seconds)))
}
