// A process that keeps state like the recorder: pairs in rows that are used and freed, changes in a journal, and images that are written
// bit by bit during changes. Beside it is the state that a naive reader expects after every record.

import type { ImageSink } from '../../../src/restore/state-port.ts'
import type { StateStore } from '../../../src/state/state-store.ts'
import type { MemoryDisk } from '../models/memory-disk.ts'
import { mkPair, textOfPair, type StateNode } from './state-files.ts'

export type Step =
  | { readonly kind: 'pair' | 'until' | 'gone'; readonly row: number }
  | { readonly kind: 'number' }
  | { readonly kind: 'document'; readonly key: number; readonly text: number | undefined }
  | { readonly kind: 'flush' | 'settle' | 'begin-image' | 'image-part' | 'end-image' }

/** Numbers and documents as texts, pairs with their times. */
export interface Snapshot {
  readonly pairs: ReadonlyMap<string, number>
  readonly documents: ReadonlyMap<string, string>
}

export class StateRun {
  /** The state after each record, the empty one first. */
  readonly history: Snapshot[]
  /** Records that the disk has confirmed. */
  flushed = 0
  /** Numbers that a call has returned. */
  readonly numbers: number[] = []
  /** Every time that each pair has had. */
  readonly times = new Map<string, Set<number>>()
  readonly #node: StateNode
  readonly #disk: MemoryDisk
  readonly #store: StateStore
  readonly #rows = new Map<number, { serial: number; until: number }>()
  readonly #documents = new Map<string, string>()
  #image: { readonly sink: ImageSink; waiting: number[] } | undefined
  /** Records of the last flush. */
  #asked = 0
  #serial: number
  #time = 500

  constructor(node: StateNode, disk: MemoryDisk, serial = 0) {
    this.#node = node
    this.#disk = disk
    this.#store = node.store(disk)
    this.#serial = serial
    this.history = [this.#snapshot()]
  }

  get store(): StateStore {
    return this.#store
  }

  get serial(): number {
    return this.#serial
  }

  async step(step: Step): Promise<void> {
    const before = this.#disk.hasEnded
    await this.#do(step)
    if (!before && this.#disk.hasEnded) this.flushed = Math.min(this.flushed, this.history.length)
  }

  async #do(step: Step): Promise<void> {
    switch (step.kind) {
      case 'pair':
      case 'until':
      case 'gone':
        this.#change(step.kind, step.row)
        return
      case 'number': {
        const id = 2 ** 24 + ++this.#serial
        this.#store.numbers([{ id, labels: labelsOf(id) }])
        if (!this.#disk.hasEnded) this.numbers.push(id)
        return
      }
      case 'document':
        this.#setDocument(`p${step.key}`, step.text)
        return
      case 'flush':
        this.#store.flush()
        this.#asked = this.history.length - 1
        return
      case 'settle':
        await this.#settle()
        return
      case 'begin-image': {
        const sink = this.#store.beginImage()
        if (sink !== undefined) this.#image = { sink, waiting: [...this.#rows.keys()] }
        return
      }
      case 'image-part':
        this.#givePart(2)
        return
      case 'end-image':
        this.#endImage()
    }
  }

  async #settle(): Promise<void> {
    const asked = this.#asked
    await this.#disk.settle()
    this.#node.clock.advance(400)
    await this.#disk.settle()
    if (!this.#disk.hasEnded) this.flushed = Math.max(this.flushed, asked)
  }

  #change(kind: 'pair' | 'until' | 'gone', row: number): void {
    const pair = this.#rows.get(row)
    this.#time += 1
    if (kind === 'pair') {
      const serial = ++this.#serial
      this.#rows.set(row, { serial, until: this.#time })
      this.#store.pair(mkPair(row, serial, this.#time))
    } else if (pair === undefined) {
      return
    } else if (kind === 'until') {
      pair.until = this.#time
      this.#store.until(row, this.#time)
    } else {
      this.#rows.delete(row)
      this.#store.gone(row)
    }
    this.#remember()
  }

  #setDocument(key: string, number: number | undefined): void {
    const text = number === undefined ? undefined : `text ${number}`
    if (text === undefined) this.#documents.delete(key)
    else this.#documents.set(key, text)
    this.#store.document({ kind: 'source-file', key, text })
    this.#remember()
  }

  #givePart(count: number): void {
    for (const row of this.#image?.waiting.splice(0, count) ?? []) {
      const pair = this.#rows.get(row)
      if (pair !== undefined) this.#image?.sink.pair(mkPair(row, pair.serial, pair.until))
    }
  }

  #endImage(): void {
    if (this.#image === undefined) return
    const { sink } = this.#image
    this.#givePart(Infinity)
    sink.numbers(this.numbers.map((id) => ({ id, labels: labelsOf(id) })))
    for (const [key, text] of this.#documents) sink.document({ kind: 'source-file', key, text })
    sink.end()
    this.#image = undefined
  }

  #remember(): void {
    const now = this.#snapshot()
    this.history.push(now)
    for (const [text, until] of now.pairs) {
      const times = this.times.get(text) ?? new Set()
      this.times.set(text, times.add(until))
    }
  }

  #snapshot(): Snapshot {
    const pairs = new Map<string, number>()
    for (const [row, { serial, until }] of this.#rows) {
      pairs.set(textOfPair(mkPair(row, serial)), until)
    }
    return { pairs, documents: new Map(this.#documents) }
  }
}

export function labelsOf(id: number): readonly string[] {
  return [`fqdn:n${id}.test`, 'reserved:world']
}
