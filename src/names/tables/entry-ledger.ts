// The ledger queues the entries that changed since their last record was written (restore/state-recorder.ts). A changed entry is in the
// queue once, in the order of the changes. A record gives an entry up to a sixteenth more remaining time than the entry has, and never
// less. So an entry whose name is asked every second needs no record every second. The name cache calls the ledger on the packet path.
// An answer whose new end the last record already covers costs one comparison. The typed arrays need 9 octets per entry.

import { int32Column, uint8Column } from '../../core/tables/columns.ts'

/** A record covers the remaining time of an entry, plus the remaining time divided by this number. */
const SLACK_SHARE = 16

const IS_WAITING = 1
/** The next record has to contain the whole entry. */
const WANTS_WHOLE = 2
/** A record was written for the entry that now has this row. */
const IS_RECORDED = 4

/**
 * The kind of record that an entry needs. `whole`: the whole entry. `until`: only its new end. `gone`: the entry was removed. `none`: the
 * entry was added and removed between two records.
 */
export type DueRecord = 'whole' | 'until' | 'gone' | 'none'

export class EntryLedger {
  /** The end of the entry according to its last record, in ticks. 0: no record, or an end before the first tick. */
  readonly #covered: Int32Array
  readonly #flags: Uint8Array
  readonly #queue: Int32Array
  /** Called when an entry enters the empty queue. */
  onWaiting: () => void = () => undefined
  /** True while a restart brings entries back. They do not enter the queue: their old records suffice until the next image. */
  isRestoring = false
  #first = 0
  #waiting = 0

  constructor({ capacity }: { readonly capacity: number }) {
    this.#covered = int32Column(capacity + 1)
    this.#flags = uint8Column(capacity + 1)
    this.#queue = int32Column(capacity)
  }

  /** Number of entries in the queue. */
  get waiting(): number {
    return this.#waiting
  }

  /** Call when an entry was added, or when something other than its end changed. */
  changed(entry: number): void {
    this.#flags[entry]! |= WANTS_WHOLE
    if (!this.isRestoring) this.#wait(entry)
  }

  /** Call when an entry got the end `until`, in ticks. */
  prolonged(entry: number, until: number): void {
    if (until <= this.#covered[entry]!) return
    if (this.isRestoring) this.#covered[entry] = until
    else this.#wait(entry)
  }

  removed(entry: number): void {
    this.#covered[entry] = 0
    if ((this.#flags[entry]! & IS_RECORDED) !== 0) this.#wait(entry)
  }

  /** Takes the first entry out of the queue. Returns 0 when the queue is empty. */
  take(): number {
    if (this.#waiting === 0) return 0
    const entry = this.#queue[this.#first]!
    this.#first = (this.#first + 1) % this.#queue.length
    this.#waiting--
    this.#flags[entry]! &= ~IS_WAITING
    return entry
  }

  /** Returns the kind of record that an entry from `take` needs. The caller writes the record. `isThere`: the row still has an entry. */
  due(entry: number, isThere: boolean): DueRecord {
    const flags = this.#flags[entry]!
    if (!isThere) {
      this.#flags[entry] = flags & IS_WAITING
      return (flags & IS_RECORDED) === 0 ? 'none' : 'gone'
    }
    this.#flags[entry] = (flags & IS_WAITING) | IS_RECORDED
    return (flags & (WANTS_WHOLE | IS_RECORDED)) === IS_RECORDED ? 'until' : 'whole'
  }

  /** Notes that an image gets a whole record of the entry. Returns the end, in ticks, that the record has to contain. */
  imaged(entry: number, until: number): number {
    this.#flags[entry]! |= IS_RECORDED
    const covered = this.#covered[entry]!
    return covered === 0 ? until : Math.max(until, covered)
  }

  /** Returns the end, in ticks, that the next record of the entry has to contain: `until` and the slack. Notes it as covered. */
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
