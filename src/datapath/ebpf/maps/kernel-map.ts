// KernelMap is one pinned map. It writes and removes entries in batches, with an error for each entry. It reads the whole map in
// slices, and counts its writes. Opening a map checks its key and value sizes, because the kernel writes that many octets into
// this process's buffers. Removing an absent key is no error, so every change can be repeated.

import { UnavailableError } from '../../../core/errors.ts'
import { CURSOR_DONE, CURSOR_SIZE, type Bpf } from '../../../native/native.ts'
import { MAP_SHAPES, type MapName } from './layout.ts'

const ENOENT = 2
const ENOSPC = 28
const READ_SLICE = 4096
const READ_SLICE_LIMIT = 1 << 20

/** Called for each refused entry, with its position and errno. */
export type Refused = (index: number, errno: number) => void

export class KernelMap {
  readonly name: MapName
  readonly fd: number
  readonly keySize: number
  readonly valueSize: number
  /** How many entries the map can have. */
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

  /** How many entries were written or removed so far, including refused entries. */
  get writes(): number {
    return this.#writes
  }

  /** Writes the first `count` entries. Tries all of them, even after a refusal. */
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

  /** Removes the first `count` keys. Tries all of them, even after a refusal. */
  remove(keys: Uint8Array, count: number, refused: Refused): void {
    if (count === 0) return
    this.#writes += count
    const errors = this.#errorsOf(count)
    if (this.#bpf.remove(this.fd, keys, count, this.keySize, errors) === 0) return
    for (let i = 0; i < count; i++) {
      if (errors[i]! !== 0 && errors[i]! !== ENOENT) refused(i, errors[i]!)
    }
  }

  /** Writes one entry. Returns 0 or the errno. */
  set(key: Uint8Array, value: Uint8Array): number {
    let result = 0
    this.update(key, value, 1, (_, errno) => (result = errno))
    return result
  }

  /** Removes one key. Returns 0 or the errno. */
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

  /** Reads the whole map. Calls `visit` for each entry with the buffers and the entry's offsets in them. */
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

/** A key as text, two hex digits for each octet, so that sets can hold it. `keyOf` does the reverse. */
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

  /** Reads about `limit` more entries at most. Returns how many it read. */
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
      // One bucket of the hash has more entries than the buffers can hold.
      if (count !== -ENOSPC) throw new Error(`Cannot read map ${this.#map.name}: errno ${-count}`)
    }
    throw new Error(`Cannot read map ${this.#map.name}: one bucket is too large`)
  }
}

/** The maps of the loaded object, by name. */
export type KernelMaps = Readonly<Record<MapName, KernelMap>>

export function openMaps(bpf: Bpf, fds: Readonly<Record<string, number>>): KernelMaps {
  const open = (name: MapName): KernelMap => {
    const fd = fds[name]
    if (fd === undefined) throw new Error(`Cannot find map ${name} in namegate.bpf.o`)
    return new KernelMap(bpf, name, fd)
  }
  return {
    ng_mode: open('ng_mode'),
    ng_config: open('ng_config'),
    ng_ipcache: open('ng_ipcache'),
    ng_hosts: open('ng_hosts'),
    ng_endpoints: open('ng_endpoints'),
    ng_source: open('ng_source'),
    ng_policy: open('ng_policy'),
    ng_conn: open('ng_conn'),
    ng_conn_new: open('ng_conn_new'),
    ng_flow_slot: open('ng_flow_slot'),
    ng_flow_turn: open('ng_flow_turn'),
    ng_conn_count: open('ng_conn_count'),
    ng_listeners: open('ng_listeners'),
    ng_dns_source: open('ng_dns_source'),
    ng_gate: open('ng_gate'),
    ng_adopting: open('ng_adopting'),
    ng_adopted: open('ng_adopted'),
    ng_intercepted: open('ng_intercepted'),
    ng_stats: open('ng_stats'),
  }
}
