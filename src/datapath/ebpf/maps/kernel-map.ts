// One pinned map: writes and removals in batches, each entry with its own error; reads of the whole map in slices. Counts its writes. Opening
// a map checks its key and value sizes, because the kernel writes as many octets into our buffers. Removing an absent key is no error, so
// that every change can be repeated.

import { UnavailableError } from '../../../core/errors.ts'
import { CURSOR_DONE, CURSOR_SIZE, type Bpf } from '../../../native/native.ts'
import { MAP_SHAPES, type MapName } from './layout.ts'

const ENOENT = 2
const ENOSPC = 28
const READ_SLICE = 4096
const READ_SLICE_LIMIT = 1 << 20

/** Called for each entry that was refused, with its position and errno. */
export type Refused = (index: number, errno: number) => void

export class KernelMap {
  readonly name: MapName
  readonly fd: number
  readonly keySize: number
  readonly valueSize: number
  /** How many entries it can have. */
  readonly capacity: number
  readonly #bpf: Bpf
  #errors = new Int32Array(1024)
  #writes = 0

  constructor(bpf: Bpf, name: MapName, fd: number) {
    this.#bpf = bpf
    this.name = name
    this.fd = fd
    this.keySize = MAP_SHAPES[name].key
    this.valueSize = MAP_SHAPES[name].value
    const found = new Uint32Array(3)
    bpf.shape(fd, found)
    this.capacity = found[2]!
    if (found[0] !== this.keySize || found[1] !== this.valueSize) {
      throw new UnavailableError(
        `Cannot use map ${name}: its entries are ${found[0]} and ${found[1]} octets, ` +
          `not ${this.keySize} and ${this.valueSize}: run namegate datapath detach`,
      )
    }
  }

  /** Entries written or removed so far, refused ones included. */
  get writes(): number {
    return this.#writes
  }

  /** Writes the first `count` entries; all are tried. */
  update(keys: Uint8Array, values: Uint8Array, count: number, refused: Refused): void {
    if (count === 0) return
    this.#writes += count
    const errors = this.#errorsOf(count)
    const { keySize, valueSize } = this
    if (this.#bpf.update(this.fd, keys, values, count, keySize, valueSize, errors) === 0) return
    for (let i = 0; i < count; i++) {
      if (errors[i]! !== 0) refused(i, errors[i]!)
    }
  }

  /** Removes the first `count` keys; all are tried. */
  remove(keys: Uint8Array, count: number, refused: Refused): void {
    if (count === 0) return
    this.#writes += count
    const errors = this.#errorsOf(count)
    if (this.#bpf.remove(this.fd, keys, count, this.keySize, errors) === 0) return
    for (let i = 0; i < count; i++) {
      if (errors[i]! !== 0 && errors[i]! !== ENOENT) refused(i, errors[i]!)
    }
  }

  /** Writes one entry; 0 or its errno. */
  set(key: Uint8Array, value: Uint8Array): number {
    let result = 0
    this.update(key, value, 1, (_, errno) => (result = errno))
    return result
  }

  /** Removes one key; 0 or its errno. */
  delete(key: Uint8Array): number {
    let result = 0
    this.remove(key, 1, (_, errno) => (result = errno))
    return result
  }

  /** The value of a key, or undefined. */
  get(key: Uint8Array): Uint8Array | undefined {
    const value = new Uint8Array(this.valueSize)
    return this.#bpf.lookup(this.fd, key, value) === 0 ? value : undefined
  }

  /** Reads the whole map; `visit` gets buffers and the offsets of one entry in them. */
  forEach(visit: (keys: Uint8Array, key: number, values: Uint8Array, value: number) => void): void {
    const reader = this.reader()
    while (!reader.done) {
      const count = reader.read(READ_SLICE)
      for (let i = 0; i < count; i++) {
        visit(reader.keys, i * this.keySize, reader.values, i * this.valueSize)
      }
    }
  }

  /** All keys as text. */
  keyTexts(): readonly string[] {
    const texts: string[] = []
    this.forEach((keys, at) => texts.push(keyText(keys.subarray(at, at + this.keySize))))
    return texts
  }

  reader(): MapReader {
    return new MapReader(this.#bpf, this)
  }

  #errorsOf(count: number): Int32Array {
    if (this.#errors.length < count) this.#errors = new Int32Array(count * 2)
    return this.#errors
  }
}

/** A key as text, two digits an octet, so that sets can hold it; `keyOf` is the way back. */
export function keyText(octets: Uint8Array): string {
  return Buffer.from(octets).toString('hex')
}

export function keyOf(text: string): Uint8Array {
  return Buffer.from(text, 'hex')
}

/** One pass over a map. `keys` and `values` hold what the last `read` found. */
export class MapReader {
  keys = new Uint8Array(0)
  values = new Uint8Array(0)
  readonly #bpf: Bpf
  readonly #map: KernelMap
  readonly #cursor = new Uint8Array(CURSOR_SIZE)

  constructor(bpf: Bpf, map: KernelMap) {
    this.#bpf = bpf
    this.#map = map
  }

  get done(): boolean {
    return this.#cursor[0] === CURSOR_DONE
  }

  /** Reads at most about `limit` entries on; returns how many. */
  read(limit: number): number {
    const { fd, keySize, valueSize } = this.#map
    for (let room = limit; room <= READ_SLICE_LIMIT; room *= 2) {
      if (this.keys.length < room * keySize) {
        this.keys = new Uint8Array(room * keySize)
        this.values = new Uint8Array(room * valueSize)
      }
      const cursor = this.#cursor
      const count = this.#bpf.slice(fd, cursor, this.keys, this.values, room, keySize, valueSize)
      if (count >= 0) return count
      // One bucket of the hash holds more than there is room for.
      if (count !== -ENOSPC) throw new Error(`Cannot read map ${this.#map.name}: errno ${-count}`)
    }
    throw new Error(`Cannot read map ${this.#map.name}: one bucket is too large`)
  }
}
