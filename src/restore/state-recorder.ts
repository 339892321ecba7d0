// StateRecorder writes the records of the state that must outlive the process (docs/spec/promises "State and restart"). It writes numbers
// before any kernel entry has them. It writes entries and documents soon after they change, in slices and never on the packet path. From
// time to time it writes an image of everything.
//
// For an image the recorder walks over all entries. The image is complete when every change that waited at the end of the walk has a
// record. Image and journal together then have the last state of each entry. The recorder begins no image while a restart still brings
// entries back, because only the files of the daemon before have all entries until then.

import type { Identity } from '../core/ids.ts'
import type { Timer } from '../core/clock.ts'
import type { EntryLedger } from '../names/tables/entry-ledger.ts'
import type { CoreState } from '../enforcement/core-state.ts'
import type { ImageSink, PairRecord, RecordSink, SavedDocument, StateSink } from './state-port.ts'

/** A change gets its record after this many milliseconds. */
const WRITE_MS = 250
const SLICE_MS = 1
const ENTRIES_PER_LOOK = 64
/** While too many records wait for the disk, the recorder pauses for this many milliseconds. */
const FULL_MS = 20
/** After changes, and while the disk is behind, the recorder checks in this interval whether an image is needed. */
const IMAGE_LOOK_MS = 10_000

export interface StateRecorderOptions {
  readonly core: CoreState
  readonly ledger: EntryLedger
  readonly sink: StateSink
  /** Seconds from the boot to the moment at which the daemon's clock showed 0. */
  readonly bootAtZero: number
  /** Returns the present version of all documents, for an image. */
  readonly documents: () => Iterable<SavedDocument>
}

type Writable<T> = { -readonly [Key in keyof T]: T[Key] }

export class StateRecorder {
  readonly #options: StateRecorderOptions
  readonly #record: Writable<PairRecord>
  #timer: Timer | undefined
  /** Checks once more after the last record, because the disk reports failures late. Continues while the disk is behind. */
  #lookTimer: Timer | undefined
  #image: ImageSink | undefined
  /** The next entry of the walk for the image, 0 after the walk. */
  #imageRow = 0
  /** How many of the changes that waited at the end of the walk have no record yet. */
  #imageNeeds = 0
  #lookedAt = Number.NEGATIVE_INFINITY
  #stopped = false

  constructor(options: StateRecorderOptions) {
    this.#options = options
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
    const { allocator, labelSets } = this.#options.core
    const numbers = allocated.flatMap((id) => {
      const set = allocator.setOf(id)
      return set === undefined ? [] : [{ id, labels: labelSets.format(set) }]
    })
    this.#options.sink.numbers(numbers)
    this.#soon(WRITE_MS)
  }

  document(document: SavedDocument): void {
    this.#options.sink.document(document)
    this.#soon(WRITE_MS)
  }

  /** Writes everything that has no record yet, so that the files hold the present state. */
  finish(): void {
    this.#stopped = true
    this.#timer?.cancel()
    this.#lookTimer?.cancel()
    this.#image?.abandon()
    this.#image = undefined
    while (this.#options.ledger.waiting > 0) this.#writeNext()
    this.#options.sink.flush()
  }

  #soon(milliseconds: number): void {
    if (this.#timer !== undefined || this.#stopped) return
    this.#timer = this.#options.core.clock.after(milliseconds, () => {
      this.#timer = undefined
      this.#work()
      this.#lookLater()
    })
  }

  #lookLater(): void {
    if (this.#stopped) return
    this.#lookTimer ??= this.#options.core.clock.after(IMAGE_LOOK_MS, () => {
      this.#lookTimer = undefined
      this.#work()
      if (this.#options.sink.isBehind) this.#lookLater()
    })
  }

  #work(): void {
    const { core, ledger, sink } = this.#options
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

  /** Does a small piece of work. Returns false when there is none. */
  #advance(): boolean {
    const { ledger } = this.#options
    for (let i = 0; i < ENTRIES_PER_LOOK && ledger.waiting > 0; i++) this.#writeNext()
    const image = this.#image
    if (image === undefined) return ledger.waiting > 0
    if (this.#imageRow !== 0) this.#walk(image)
    else if (this.#imageNeeds <= 0) this.#endImage(image)
    return true
  }

  #writeNext(): void {
    const { core, ledger, sink, bootAtZero } = this.#options
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
    const { names, mappings, entries } = this.#options.core.names
    const { prefixes } = this.#options.core.ipcache
    const mapping = entries.mapping[entry]!
    const name = mappings.name[mapping]!
    const prefix = mappings.prefix[mapping]!
    const record = this.#record
    record.row = entry
    record.endpoint = entries.endpoint[entry]!
    record.until = Math.ceil(until + this.#options.bootAtZero)
    record.grace = entries.grace[entry]!
    record.family = prefixes.family(prefix)
    record.addressAt = prefix * 16
    record.wire = names.octetsOf(name)
    record.nameAt = names.offsetOf(name)
    record.nameLength = names.lengthOf(name)
    sink.pair(record)
  }

  #beginImage(): void {
    const { core, sink, documents } = this.#options
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
    const { core, ledger } = this.#options
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
    this.#options.sink.flush()
    image.end()
    this.#image = undefined
  }
}
