// A state folder in memory: the plainest implementation of the port. For each key the last record counts. An image replaces everything
// that was written before the image was begun. Only the process that wrote a row knows its meaning.

import type {
  ImageSink,
  PairRecord,
  RecordSink,
  SavedDocument,
  SavedNumber,
  SavedPairs,
  SavedState,
  StateSink,
} from '../../../src/restore/state-port.ts'

interface KeptPair {
  readonly endpoint: number
  until: number
  readonly grace: number
  readonly family: 4 | 6
  /** The address, followed by the name. */
  readonly octets: Uint8Array
}

/** A record that can be replayed. */
type Written = (into: Book) => void

class Book {
  readonly numbers = new Map<number, readonly string[]>()
  readonly pairs = new Map<string, KeptPair>()
  readonly documents = new Map<string, SavedDocument>()
}

class Records implements RecordSink {
  readonly written: Written[] = []
  isFull = false
  #run: number

  constructor(run: number) {
    this.#run = run
  }

  /** Another process writes from here on. */
  beginRun(): number {
    return ++this.#run
  }

  #keyOf(row: number): string {
    return `${this.#run} ${row}`
  }

  numbers(numbers: readonly SavedNumber[]): void {
    for (const { id, labels } of numbers) this.written.push((book) => book.numbers.set(id, labels))
  }

  pair({ row, endpoint, until, grace, family, ...at }: PairRecord): void {
    const size = family === 4 ? 4 : 16
    const octets = new Uint8Array(16 + at.nameLength)
    octets.set(at.octets.subarray(at.addressAt, at.addressAt + size))
    octets.set(at.wire.subarray(at.nameAt, at.nameAt + at.nameLength), 16)
    const key = this.#keyOf(row)
    this.written.push((book) => book.pairs.set(key, { endpoint, until, grace, family, octets }))
  }

  until(row: number, until: number): void {
    const key = this.#keyOf(row)
    this.written.push((book) => {
      const pair = book.pairs.get(key)
      if (pair !== undefined) pair.until = until
    })
  }

  gone(row: number): void {
    const key = this.#keyOf(row)
    this.written.push((book) => book.pairs.delete(key))
  }

  document(document: SavedDocument): void {
    this.written.push((book) => book.documents.set(`${document.kind} ${document.key}`, document))
  }
}

export class MemoryState extends Records implements StateSink {
  isBehind = false
  wantsImage = false
  images = 0
  onLost: () => void = () => undefined
  #before: readonly Written[] = []
  #runs = 0

  constructor() {
    super(0)
  }

  flush(): void {
    // Every record is kept at once.
  }

  beginImage(): ImageSink {
    const image = new Records(this.#runs)
    const begun = this.written.length
    const end = (): void => {
      this.#before = [...image.written]
      this.written.splice(0, begun)
      this.wantsImage = false
      this.images++
    }
    return {
      isFull: false,
      numbers: (numbers) => image.numbers(numbers),
      pair: (record) => image.pair(record),
      until: (row, until) => image.until(row, until),
      gone: (row) => image.gone(row),
      document: (document) => image.document(document),
      end,
      abandon: () => undefined,
    }
  }

  /** What a daemon reads at its start. From here on, that daemon writes. */
  read(): SavedState {
    this.#runs = this.beginRun()
    const book = new Book()
    for (const write of [...this.#before, ...this.written]) write(book)
    const texts = (kind: string): ReadonlyMap<string, string> => {
      const kept = [...book.documents.values()].filter((document) => document.kind === kind)
      return new Map(kept.flatMap(({ key, text }) => (text === undefined ? [] : [[key, text]])))
    }
    return {
      isThisBoot: true,
      numbers: [...book.numbers].map(([id, labels]) => ({ id, labels })),
      endpoints: texts('endpoint'),
      sourceFiles: texts('source-file'),
      pairs: columnsOf([...book.pairs.values()]),
      age: 0,
    }
  }
}

function columnsOf(pairs: readonly KeptPair[]): SavedPairs {
  const at = (row: number): KeptPair => {
    const pair = pairs[row]
    if (pair === undefined) throw new RangeError(`row ${row}`)
    return pair
  }
  return {
    count: pairs.length,
    endpoint: (row) => at(row).endpoint,
    until: (row) => at(row).until,
    grace: (row) => at(row).grace,
    family: (row) => at(row).family,
    octets: (row) => at(row).octets,
    addressAt: () => 0,
    nameAt: () => 16,
    nameLength: (row) => at(row).octets.length - 16,
    free: () => undefined,
  }
}
