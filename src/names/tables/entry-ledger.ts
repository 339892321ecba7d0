// The entries that changed since their last record was written (restore/state-recorder.ts). Each waits once, in the order of the
// changes. A record may promise a sixteenth more time than the entry has, never less. So a name that is asked every second is not
// written every second. The name cache writes here on the packet path: one comparison for an answer that the record covers. Typed
// arrays, 9 octets an entry.

/** A record covers the time that an entry has, plus this share of it. */
const SLACK_SHARE = 16

const IS_WAITING = 1
/** The next record has to be a whole one. */
const WANTS_WHOLE = 2
/** Records of the entry were written since the row was free last. */
const IS_RECORDED = 4

/** The kind of record that an entry needs; `none`: the entry came and went between two records. */
export type DueRecord = 'whole' | 'until' | 'gone' | 'none'

export class EntryLedger {
  /** The end of the entry by its last record, in ticks; 0 also when that was before the first tick. */
  readonly #covered: Int32Array
  readonly #flags: Uint8Array
  readonly #queue: Int32Array
  /** Called when the first entry begins to wait. */
  onWaiting: () => void = () => undefined
  /** Set while a restart brings entries back. Their old records are good enough until the next image. */
  isRestoring = false
  #first = 0
  #waiting = 0

  constructor({ capacity }: { readonly capacity: number }) {
    this.#covered = new Int32Array(capacity + 1)
    this.#flags = new Uint8Array(capacity + 1)
    this.#queue = new Int32Array(capacity)
  }

  /** Entries whose record is out of date. */
  get waiting(): number {
    return this.#waiting
  }

  /** An entry is new, or something other than its time changed. */
  changed(entry: number): void {
    this.#flags[entry]! |= WANTS_WHOLE
    if (!this.isRestoring) this.#wait(entry)
  }

  /** An entry lives until this tick. */
  prolonged(entry: number, until: number): void {
    if (until <= this.#covered[entry]!) return
    if (this.isRestoring) this.#covered[entry] = until
    else this.#wait(entry)
  }

  removed(entry: number): void {
    this.#covered[entry] = 0
    if ((this.#flags[entry]! & IS_RECORDED) !== 0) this.#wait(entry)
  }

  /** Takes the entry that has waited longest; 0 when none waits. */
  take(): number {
    if (this.#waiting === 0) return 0
    const entry = this.#queue[this.#first]!
    this.#first = (this.#first + 1) % this.#queue.length
    this.#waiting--
    this.#flags[entry]! &= ~IS_WAITING
    return entry
  }

  /** The record that a taken entry needs. The caller writes it. */
  due(entry: number, isThere: boolean): DueRecord {
    const flags = this.#flags[entry]!
    if (!isThere) {
      this.#flags[entry] = flags & IS_WAITING
      return (flags & IS_RECORDED) === 0 ? 'none' : 'gone'
    }
    this.#flags[entry] = (flags & IS_WAITING) | IS_RECORDED
    return (flags & (WANTS_WHOLE | IS_RECORDED)) === IS_RECORDED ? 'until' : 'whole'
  }

  /** Notes a whole record of the entry in an image. Returns the end of the entry for that record. */
  imaged(entry: number, until: number): number {
    this.#flags[entry]! |= IS_RECORDED
    const covered = this.#covered[entry]!
    return covered === 0 ? until : Math.max(until, covered)
  }

  /** The end of the entry for the next record, in ticks. */
  cover(entry: number, until: number, now: number): number {
    const covered = until + Math.floor(Math.max(0, until - now) / SLACK_SHARE) + 1
    this.#covered[entry] = covered
    return covered
  }

  #wait(entry: number): void {
    if ((this.#flags[entry]! & IS_WAITING) !== 0) return
    this.#flags[entry]! |= IS_WAITING
    this.#queue[(this.#first + this.#waiting) % this.#queue.length] = entry
    if (this.#waiting++ === 0) this.onWaiting()
  }
}
