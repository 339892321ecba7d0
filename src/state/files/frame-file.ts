// One file that is being written: records go into one buffer while the other one is on its way to the disk, so that at
// most one write is under way and nobody waits for it. `writeNow` puts a frame of its own in between, at once: the file
// is open for appending, so frames stand one behind the other whoever writes them. After the first failure the file is
// broken: nothing more is written to it, because a frame that was cut would hide what comes behind it.

import type { DiskFile } from './disk.ts'
import { encodeHeader, HEADER_OCTETS, type FileHeader } from './file-header.ts'
import type { StateFaults } from '../faults.ts'
import { FILE_OCTETS_MAX } from './generations.ts'
import { RecordBuffer } from './record-buffer.ts'
import type { Stamp } from '../stamp.ts'

export interface FrameFileOptions {
  readonly file: DiskFile
  readonly header: FileHeader
  readonly faults: StateFaults
  readonly now: () => Stamp
  /** When the disk took something. */
  readonly onWritten: (stamp: Stamp) => void
  /** Told once, not before the constructor is done. */
  readonly onBroken: () => void
}

export class FrameFile {
  /** Octets written. */
  octets = 0
  isBroken = false
  readonly #file: DiskFile
  readonly #faults: StateFaults
  readonly #now: () => Stamp
  readonly #onWritten: (stamp: Stamp) => void
  #onBroken: () => void
  readonly #seed: number
  #filling = new RecordBuffer()
  #sealed = new RecordBuffer()
  /** Octets that a write under way will add. */
  #coming = 0
  #writing: Promise<void> | undefined
  #again = false

  /** Writes the header; the file is broken when that fails. */
  constructor(options: FrameFileOptions) {
    this.#file = options.file
    this.#faults = options.faults
    this.#now = options.now
    this.#onWritten = options.onWritten
    const header = encodeHeader(options.header)
    this.#seed = new DataView(header.buffer).getUint32(HEADER_OCTETS - 4, true)
    this.#onBroken = () => undefined
    this.#appendNow(header)
    this.#onBroken = options.onBroken
  }

  /** Where records go that may wait; `add` gives whether there was room for one. */
  add(add: (buffer: RecordBuffer) => boolean): void {
    if (this.isBroken || add(this.#filling)) return
    this.refuse()
  }

  get filling(): RecordBuffer {
    return this.#filling
  }

  /** Whether what was added waits for the disk; begins to write when much does. */
  mustWait(): boolean {
    if (this.#filling.isFull) this.flush()
    return this.#filling.isFull && !this.isBroken
  }

  /** Octets that it will have when the write under way has ended. */
  get octetsComing(): number {
    return this.octets + this.#coming
  }

  /** A record had no room. */
  refuse(): void {
    if (this.#filling.length > 0) this.#break('overflow', 'too much waits for the disk')
    else this.#faults.add('too-large', 'a record is larger than a frame may be')
  }

  /** Has what was added written as soon as the write under way has ended. */
  flush(): void {
    if (this.isBroken || this.#filling.length === 0) return
    if (this.#writing !== undefined) {
      this.#again = true
      return
    }
    const sealed = this.#filling
    this.#filling = this.#sealed
    this.#sealed = sealed
    this.#writing = this.#write(sealed)
  }

  /** Writes a frame before it returns. */
  writeNow(records: RecordBuffer): void {
    if (!this.isBroken) this.#appendNow(records.seal(this.#now(), this.#seed))
    records.clear()
  }

  /** Gives the records that wait to a file that was opened just now, and what a flush asked for with them. */
  handOver(to: FrameFile): void {
    const empty = to.#filling
    to.#filling = this.#filling
    this.#filling = empty
    if (this.#again) to.flush()
    this.#again = false
  }

  /** Until all that was added so far is written, or the file is broken. */
  async drained(): Promise<void> {
    this.flush()
    // A write that was under way did not have it; the one that follows has.
    for (let rounds = 0; rounds < 2 && this.#writing !== undefined; rounds++) await this.#writing
  }

  /** Until the disk has what was written. */
  async sync(): Promise<void> {
    if (this.isBroken) return
    try {
      await this.#file.sync()
    } catch (error) {
      this.#faults.addError(error)
      this.#breakSilently()
    }
  }

  /** Waits for the write under way. */
  async close(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing
    this.isBroken = true
    try {
      await this.#file.close()
    } catch (error) {
      this.#faults.addError(error)
    }
  }

  async #write(sealed: RecordBuffer): Promise<void> {
    const frame = sealed.seal(this.#now(), this.#seed)
    this.#coming = frame.length
    try {
      const written = await this.#file.append(frame)
      this.#count(written, frame.length)
    } catch (error) {
      this.#faults.addError(error)
      this.#breakSilently()
    }
    this.#coming = 0
    sealed.clear()
    this.#writing = undefined
    const again = this.#again || this.#filling.isFull
    this.#again = false
    if (again) this.flush()
  }

  #appendNow(octets: Uint8Array): void {
    try {
      this.#count(this.#file.appendNow(octets), octets.length)
    } catch (error) {
      this.#faults.addError(error)
      this.#breakSilently()
    }
  }

  #count(written: number, wanted: number): void {
    this.octets += written
    if (written < wanted) this.#break('short-write', `wrote ${written} octets of ${wanted}`)
    else if (this.octets > FILE_OCTETS_MAX) this.#break('overflow', 'a file is too long')
    else this.#onWritten(this.#now())
  }

  #break(cause: 'short-write' | 'overflow', message: string): void {
    this.#faults.add(cause, message)
    this.#breakSilently()
  }

  #breakSilently(): void {
    if (this.isBroken) return
    this.isBroken = true
    this.#onBroken()
  }
}
