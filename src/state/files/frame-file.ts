// FrameFile writes one file of frames. It has two buffers: new records are added to one while the disk takes the other. So at most one
// write is in progress, and no caller waits for it. `writeNow` appends a separate frame before it returns. After the first failure the
// file is broken and takes no more records, because a cut frame would hide all frames after it.

import type { BootClock, Clock } from '../../core/clock.ts'
import { LABEL_RULES } from '../../identity/label-rules.ts'
import type { StateFaults } from '../faults.ts'
import { type Stamp, stampOf } from '../stamp.ts'
import type { Disk, DiskFile } from './disk.ts'
import { encodeHeader, type FileHeader, FORMAT_VERSION, HEADER_OCTETS } from './file-format.ts'
import { FILE_OCTETS_MAX, journalName, unfinishedName } from './generations.ts'
import { RecordBuffer } from './record-buffer.ts'

export interface FrameFileOptions {
  readonly file: DiskFile
  readonly header: FileHeader
  readonly faults: StateFaults
  readonly now: () => Stamp
  /** Called after each successful write. */
  readonly onWritten: (stamp: Stamp) => void
  /** Called once, when the file breaks. Not called for a failure inside the constructor. */
  readonly onBroken: () => void
}

export class FrameFile {
  /** How many octets were written. */
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
  /** How many octets the write in progress has. */
  #coming = 0
  #writing: Promise<void> | undefined
  /** True if another write has to follow the write in progress. */
  #again = false

  /** Writes the header. If this fails, the file is broken. */
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

  /** Adds a record to the buffer. `add` returns false if the buffer had no room; then `refuse` is called. */
  add(add: (buffer: RecordBuffer) => boolean): void {
    if (this.isBroken || add(this.#filling)) return
    this.refuse()
  }

  get filling(): RecordBuffer {
    return this.#filling
  }

  /** Starts a write if the buffer is full. Returns true if the buffer is still full, because another write is in progress. */
  mustWait(): boolean {
    if (this.#filling.isFull) this.flush()
    return this.#filling.isFull && !this.isBroken
  }

  /** How many octets the file has after the write in progress. */
  get octetsComing(): number {
    return this.octets + this.#coming
  }

  /** Call when a record had no room. Breaks the file if records wait. A record too large for an empty buffer is only counted. */
  refuse(): void {
    if (this.#filling.length > 0) this.#break('overflow', 'too much waits for the disk')
    else this.#faults.add('too-large', 'a record is larger than a frame may be')
  }

  /** Begins to write the buffer. If a write is in progress, the buffer is written after it. */
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

  /** Writes a separate frame before it returns, and clears `records`. */
  writeNow(records: RecordBuffer): void {
    if (!this.isBroken) this.#appendNow(records.seal(this.#now(), this.#seed))
    records.clear()
  }

  /** Moves the records of the buffer, and a requested flush, to a file that was just opened. */
  handOver(to: FrameFile): void {
    const empty = to.#filling
    to.#filling = this.#filling
    this.#filling = empty
    if (this.#again) to.flush()
    this.#again = false
  }

  /** Resolves when all records added so far are written, or the file is broken. */
  async drained(): Promise<void> {
    this.flush()
    // Records in the buffer are not part of the write in progress, but of the write after it.
    for (let rounds = 0; rounds < 2 && this.#writing !== undefined; rounds++) await this.#writing
  }

  /** Resolves when all written octets are on the disk, or the file is broken. */
  async sync(): Promise<void> {
    if (this.isBroken) return
    try {
      await this.#file.sync()
    } catch (error) {
      this.#faults.addError(error)
      this.#breakSilently()
    }
  }

  /** Closes the file after the write in progress. */
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

export interface FrameFilePlace extends Pick<
  FileHeader,
  'kind' | 'generation' | 'run' | 'startsEmpty' | 'octetsBefore'
> {
  readonly onWritten: (stamp: Stamp) => void
  readonly onBroken: (file: FrameFile) => void
}

/** The options that are the same for all files. */
export interface FrameFileShared {
  readonly disk: Disk
  readonly clock: Clock
  readonly boot: BootClock
  readonly bootId: Uint8Array
  readonly faults: StateFaults
}

/** Creates a file with its header. If the header cannot be written, the file is broken. Undefined: the file cannot be created. */
export function openFrameFile(
  { disk, clock, boot, bootId, faults }: FrameFileShared,
  { onWritten, onBroken, ...place }: FrameFilePlace,
): FrameFile | undefined {
  const name = place.kind === 'image' ? unfinishedName : journalName
  const now = (): Stamp => stampOf(clock, boot)
  const begun = now()
  try {
    const file: FrameFile = new FrameFile({
      file: disk.create(name(place.generation)),
      header: { ...place, version: FORMAT_VERSION, labelRules: LABEL_RULES, begun, bootId },
      faults,
      now,
      onWritten,
      onBroken: () => onBroken(file),
    })
    return file
  } catch (error) {
    faults.addError(error)
    return undefined
  }
}
