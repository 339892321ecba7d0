// Which pairs changed since their last record was written (restore/state-recorder.ts): each waits once, in the order in which it
// changed. A record may say that a pair lives a little longer than it does, by a sixteenth of its time, so that a name that is
// asked every second is not written every second; never shorter. Written by the name cache on the packet path: one compare for
// an answer that the record covers. Typed arrays, 9 octets a pair.

/** A record covers this share more of the time that a pair has. */
const SLACK_SHARE = 16

const IS_WAITING = 1
/** The next record has to be a whole one. */
const WANTS_WHOLE = 2
/** Records of it were written since it was last gone. */
const IS_RECORDED = 4

/** What the record of a pair that waited has to be; `none`: it came and went between two records. */
export type DueRecord = 'whole' | 'until' | 'gone' | 'none'

export class PairLedger {
  /** Up to when the last record says that a pair lives, in ticks; 0 also of one whose time was over before the first tick. */
  readonly #covered: Int32Array
  readonly #flags: Uint8Array
  readonly #queue: Int32Array
  /** Called when a pair waits and none did. */
  onWaiting: () => void = () => undefined
  /** While pairs come of which the records of the daemon before are good enough until the next image. */
  isRestoring = false
  #first = 0
  #waiting = 0

  constructor({ capacity }: { readonly capacity: number }) {
    this.#covered = new Int32Array(capacity + 1)
    this.#flags = new Uint8Array(capacity + 1)
    this.#queue = new Int32Array(capacity)
  }

  /** Pairs whose record is not up to date. */
  get waiting(): number {
    return this.#waiting
  }

  /** A pair came, or something else than its time changed. */
  changed(pair: number): void {
    this.#flags[pair]! |= WANTS_WHOLE
    if (!this.isRestoring) this.#wait(pair)
  }

  /** A pair lives until this tick. */
  prolonged(pair: number, until: number): void {
    if (until <= this.#covered[pair]!) return
    if (this.isRestoring) this.#covered[pair] = until
    else this.#wait(pair)
  }

  removed(pair: number): void {
    this.#covered[pair] = 0
    if ((this.#flags[pair]! & IS_RECORDED) !== 0) this.#wait(pair)
  }

  /** The pair that has waited longest, which then waits no more; 0 when none does. */
  take(): number {
    if (this.#waiting === 0) return 0
    const pair = this.#queue[this.#first]!
    this.#first = (this.#first + 1) % this.#queue.length
    this.#waiting--
    this.#flags[pair]! &= ~IS_WAITING
    return pair
  }

  /** What record a pair that was taken needs; the caller writes it. */
  due(pair: number, isThere: boolean): DueRecord {
    const flags = this.#flags[pair]!
    if (!isThere) {
      this.#flags[pair] = flags & IS_WAITING
      return (flags & IS_RECORDED) === 0 ? 'none' : 'gone'
    }
    this.#flags[pair] = (flags & IS_WAITING) | IS_RECORDED
    return (flags & (WANTS_WHOLE | IS_RECORDED)) === IS_RECORDED ? 'until' : 'whole'
  }

  /** A whole record of the pair was written beside, into an image: until when it is to say that the pair lives. */
  imaged(pair: number, until: number): number {
    this.#flags[pair]! |= IS_RECORDED
    const covered = this.#covered[pair]!
    return covered === 0 ? until : Math.max(until, covered)
  }

  /** Until when the record is to say that a pair lives, in ticks. */
  cover(pair: number, until: number, now: number): number {
    const covered = until + Math.floor(Math.max(0, until - now) / SLACK_SHARE) + 1
    this.#covered[pair] = covered
    return covered
  }

  #wait(pair: number): void {
    if ((this.#flags[pair]! & IS_WAITING) !== 0) return
    this.#flags[pair]! |= IS_WAITING
    this.#queue[(this.#first + this.#waiting) % this.#queue.length] = pair
    if (this.#waiting++ === 0) this.onWaiting()
  }
}
