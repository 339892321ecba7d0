// Writes the records of what must outlive the process (docs/spec/promises "State and restart"). Numbers are written before
// any kernel entry carries them, entries and documents soon after they change, and an image of everything now and then.
// The recorder works in slices and never on the packet path. It takes no image while a restart brings entries back: until
// then the files of the daemon before are the whole truth. An image is complete after the walk over all entries, once
// every change that was known by then has a record. Read in order, image and records then hold the last state of each entry.

import type { Identity } from '../core/ids.ts'
import type { Timer } from '../core/clock.ts'
import type { EntryLedger } from '../names/tables/entry-ledger.ts'
import type { CoreState } from '../enforcement/core-state.ts'
import type { ImageSink, PairRecord, RecordSink, SavedDocument, StateSink } from './state-port.ts'

/** From a change to its record, in milliseconds. */
const WRITE_MS = 250
const SLICE_MS = 1
const ENTRIES_PER_LOOK = 64
/** Pause while the disk is slow. */
const FULL_MS = 20
/** How often the recorder checks whether an image is due, while things change or the disk refuses something. */
const IMAGE_LOOK_MS = 10_000

export interface StateRecorderOptions {
  readonly core: CoreState
  readonly ledger: EntryLedger
  readonly sink: StateSink
  /** Seconds since boot when the clock showed 0. */
  readonly bootAtZero: number
  /** All documents as they are now, for an image. */
  readonly documents: () => Iterable<SavedDocument>
}

type Writable<T> = { -readonly [Key in keyof T]: T[Key] }

export class StateRecorder {
  readonly #in: StateRecorderOptions
  readonly #record: Writable<PairRecord>
  #timer: Timer | undefined
  /** Runs once more after the last record, because the disk reports failures late, and while the disk is behind. */
  #lookTimer: Timer | undefined
  #image: ImageSink | undefined
  /** The next entry that the image wants. */
  #imageRow = 0
  /** Changes known at the end of the walk that have no record yet. */
  #imageNeeds = 0
  #lookedAt = Number.NEGATIVE_INFINITY
  #stopped = false

  constructor(options: StateRecorderOptions) {
    this.#in = options
    this.#record = {
      row: 0,
      endpoint: 0,
      until: 0,
      grace: 0,
      family: 4,
      octets: options.core.ipcache.prefixes.octets,
      addressAt: 0,
      wire: options.core.ipcache.prefixes.octets,
      nameAt: 0,
      nameLength: 0,
    }
    options.ledger.onWaiting = () => this.#soon(WRITE_MS)
    options.sink.onLost = () => {
      this.#lookedAt = Number.NEGATIVE_INFINITY
      this.#soon(WRITE_MS)
    }
  }

  /** Writes the numbers of new identities before it returns. */
  numbers(allocated: readonly Identity[]): void {
    const { allocator, labelSets } = this.#in.core
    const numbers = allocated.flatMap((id) => {
      const set = allocator.setOf(id)
      return set === undefined ? [] : [{ id, labels: labelSets.format(set) }]
    })
    this.#in.sink.numbers(numbers)
    this.#soon(WRITE_MS)
  }

  document(document: SavedDocument): void {
    this.#in.sink.document(document)
    this.#soon(WRITE_MS)
  }

  /** Writes everything that has no record yet, so that the files hold the present state. */
  finish(): void {
    this.#stopped = true
    this.#timer?.cancel()
    this.#lookTimer?.cancel()
    this.#image?.abandon()
    this.#image = undefined
    while (this.#in.ledger.waiting > 0) this.#writeNext()
    this.#in.sink.flush()
  }

  #soon(milliseconds: number): void {
    if (this.#timer !== undefined || this.#stopped) return
    this.#timer = this.#in.core.clock.after(milliseconds, () => {
      this.#timer = undefined
      this.#work()
      this.#lookLater()
    })
  }

  #lookLater(): void {
    if (this.#stopped) return
    this.#lookTimer ??= this.#in.core.clock.after(IMAGE_LOOK_MS, () => {
      this.#lookTimer = undefined
      this.#work()
      if (this.#in.sink.isBehind) this.#lookLater()
    })
  }

  #work(): void {
    const { core, ledger, sink } = this.#in
    if (sink.isFull || this.#image?.isFull === true) {
      this.#soon(FULL_MS)
      return
    }
    this.#beginImage()
    const until = core.clock.now() + SLICE_MS
    let isMore = true
    do {
      isMore = this.#advance()
    } while (isMore && core.clock.now() < until)
    sink.flush()
    if (isMore) this.#soon(0)
    else if (ledger.waiting > 0) this.#soon(WRITE_MS)
  }

  /** A small piece of work; false when there is none. */
  #advance(): boolean {
    const { ledger } = this.#in
    for (let i = 0; i < ENTRIES_PER_LOOK && ledger.waiting > 0; i++) this.#writeNext()
    const image = this.#image
    if (image === undefined) return ledger.waiting > 0
    if (this.#imageRow !== 0) this.#walk(image)
    else if (this.#imageNeeds <= 0) this.#endImage(image)
    return true
  }

  #writeNext(): void {
    const { core, ledger, sink, bootAtZero } = this.#in
    const entry = ledger.take()
    this.#imageNeeds--
    const { entries } = core.names
    const due = ledger.due(entry, entries.isUsed(entry))
    if (due === 'gone') sink.gone(entry)
    if (due === 'gone' || due === 'none') return
    const until = ledger.cover(entry, entries.liveUntil[entry]!, core.names.tick())
    if (due === 'until') sink.until(entry, Math.ceil(until + bootAtZero))
    else this.#writeEntry(sink, entry, until)
  }

  #writeEntry(sink: RecordSink, entry: number, until: number): void {
    const { names, mappings, entries } = this.#in.core.names
    const { prefixes } = this.#in.core.ipcache
    const mapping = entries.mapping[entry]!
    const name = mappings.name[mapping]!
    const prefix = mappings.prefix[mapping]!
    const record = this.#record
    record.row = entry
    record.endpoint = entries.endpoint[entry]!
    record.until = Math.ceil(until + this.#in.bootAtZero)
    record.grace = entries.grace[entry]!
    record.family = prefixes.family(prefix)
    record.addressAt = prefix * 16
    record.wire = names.octetsOf(name)
    record.nameAt = names.offsetOf(name)
    record.nameLength = names.lengthOf(name)
    sink.pair(record)
  }

  #beginImage(): void {
    const { core, sink, documents } = this.#in
    if (this.#image !== undefined || core.names.toRestore !== undefined) return
    if (core.clock.now() < this.#lookedAt + IMAGE_LOOK_MS) return
    this.#lookedAt = core.clock.now()
    if (!sink.wantsImage) return
    const image = sink.beginImage()
    if (image === undefined) return
    const { allocator, labelSets } = core
    const numbers = [...allocator.numbered()].map(({ id, set }) => {
      return { id: Number(id), labels: labelSets.format(set) }
    })
    image.numbers([...numbers, ...allocator.numbers.withheld])
    for (const document of documents()) image.document(document)
    this.#image = image
    this.#imageRow = 1
  }

  #walk(image: ImageSink): void {
    const { core, ledger } = this.#in
    const { entries } = core.names
    for (let i = 0; i < ENTRIES_PER_LOOK; i++) {
      const entry = this.#imageRow
      if (entry > entries.slots.high) {
        this.#imageRow = 0
        this.#imageNeeds = ledger.waiting
        return
      }
      this.#imageRow++
      if (entries.isUsed(entry)) {
        this.#writeEntry(image, entry, ledger.imaged(entry, entries.liveUntil[entry]!))
      }
    }
  }

  #endImage(image: ImageSink): void {
    this.#in.sink.flush()
    image.end()
    this.#image = undefined
  }
}
