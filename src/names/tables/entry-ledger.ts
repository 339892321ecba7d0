// Which entries changed since their last record was written (restore/state-recorder.ts): each waits once, in the order in which it
// changed. A record may say that an entry lives a little longer than it does, by a sixteenth of its time, so that a name that is
// asked every second is not written every second; never shorter. Written by the name cache on the packet path: one compare for
// an answer that the record covers. Typed arrays, 9 octets an entry.

/** A record covers this share more of the time that an entry has. */
const SLACK_SHARE = 16

const IS_WAITING = 1
/** The next record has to be a whole one. */
const WANTS_WHOLE = 2
/** Records of it were written since it was last gone. */
const IS_RECORDED = 4

/** What the record of an entry that waited has to be; `none`: it came and went between two records. */
export type DueRecord = 'whole' | 'until' | 'gone' | 'none'

export class EntryLedger {
  /** Up to when the last record says that an entry lives, in ticks; 0 also of one whose time was over before the first tick. */
  readonly #covered: Int32Array
  readonly #flags: Uint8Array
  readonly #queue: Int32Array
  /** Called when an entry waits and none did. */
  onWaiting: () => void = () => undefined
  /** While entries come of which the records of the daemon before are good enough until the next image. */
  isRestoring = false
  #first = 0
  #waiting = 0

  constructor({ capacity }: { readonly capacity: number }) {
    this.#covered = new Int32Array(capacity + 1)
    this.#flags = new Uint8Array(capacity + 1)
    this.#queue = new Int32Array(capacity)
  }

  /** Entries whose record is not up to date. */
  get waiting(): number {
    return this.#waiting
  }

  /** An entry came, or something else than its time changed. */
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

  /** The entry that has waited longest, which then waits no more; 0 when none does. */
  take(): number {
    if (this.#waiting === 0) return 0
    const entry = this.#queue[this.#first]!
    this.#first = (this.#first + 1) % this.#queue.length
    this.#waiting--
    this.#flags[entry]! &= ~IS_WAITING
    return entry
  }

  /** What record an entry that was taken needs; the caller writes it. */
  due(entry: number, isThere: boolean): DueRecord {
    const flags = this.#flags[entry]!
    if (!isThere) {
      this.#flags[entry] = flags & IS_WAITING
      return (flags & IS_RECORDED) === 0 ? 'none' : 'gone'
    }
    this.#flags[entry] = (flags & IS_WAITING) | IS_RECORDED
    return (flags & (WANTS_WHOLE | IS_RECORDED)) === IS_RECORDED ? 'until' : 'whole'
  }

  /** A whole record of the entry was written beside, into an image: until when it is to say that the entry lives. */
  imaged(entry: number, until: number): number {
    this.#flags[entry]! |= IS_RECORDED
    const covered = this.#covered[entry]!
    return covered === 0 ? until : Math.max(until, covered)
  }

  /** Until when the record is to say that an entry lives, in ticks. */
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
