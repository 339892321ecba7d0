// This file reads everything in force back from the kernel's maps: at once, in slices between commits, or ahead of time by a
// thread. A pass over the trie of prefixes continues from the last key that it read. If that key is gone, the kernel starts again
// from the first key, and the pass starts again too. After three such passes, the next pass reads without pauses.

import { statSync } from 'node:fs'
import { join } from 'node:path'
import type { DatapathDump, DatapathEndpoint, PolicyEntry } from '../../entries.ts'
import { PREFIX_KEY_SIZE, PREFIX_VALUE_SIZE, PrefixBatch } from '../../prefix-batch.ts'
import { Prefixes } from './prefixes.ts'
import type { KernelMap, KernelMaps } from './kernel-map.ts'
import { formatHookKey } from '../../hooks/find-hook.ts'
import {
  decodeEndpoint,
  decodeHookKey,
  decodeMode,
  decodePolicy,
  encodeNumber,
  type MapName,
} from './layout.ts'
import { Sources } from './sources.ts'
import type { Bpf } from '../../../native/native.ts'
import { pinDirectory } from './bpffs.ts'

/** Entries between two pauses. They take a millisecond or less. */
const SLICE = 512
const WHOLE = 4096
const PASSES = 3

type Slices<T> = Generator<undefined, T>

/** The entries of the two maps of prefixes. */
export interface PrefixParts {
  readonly hosts: PrefixBatch
  readonly trie: PrefixBatch
}

/** `ahead` is what a thread read ahead. */
export function readDump(
  maps: KernelMaps,
  prefixes = new Prefixes(maps),
  ahead?: PrefixParts,
): DatapathDump {
  const reading = readParts(maps, prefixes, false, ahead)
  for (;;) {
    const step = reading.next()
    if (step.done === true) return step.value
  }
}

/** Reads like `readDump`, with pauses. An entry that changes during the read can have its old or its new value. */
export function readDumpInSlices(maps: KernelMaps, prefixes: Prefixes): Slices<DatapathDump> {
  return readParts(maps, prefixes, true)
}

function* readParts(
  maps: KernelMaps,
  both: Prefixes,
  isPaused: boolean,
  ahead?: PrefixParts,
): Slices<DatapathDump> {
  const trie = ahead?.trie ?? (yield* readPrefixes(both.trie, isPaused))
  const hosts = ahead?.hosts ?? (yield* readPrefixes(both.hosts, isPaused))
  const prefixes = both.merge(hosts, trie)
  const policies: PolicyEntry[] = []
  yield* eachEntry(maps.ng_policy, isPaused, (keys, key, values, value) => {
    policies.push(decodePolicy(keys, key, values, value))
  })
  const sources = new Sources(maps.ng_source).read()
  const endpoints: DatapathEndpoint[] = []
  maps.ng_endpoints.forEach((keys, key, values, value) => {
    const { id, generation, enforcing, audit, scoped, fenced } = decodeEndpoint(values, value)
    if (fenced) return
    const hookKey = formatHookKey(decodeHookKey(keys, key))
    const held = sources.get(id) ?? []
    endpoints.push({ id, generation, enforcing, audit, scoped, sources: held, hookKey })
  })
  const mode = decodeMode(maps.ng_mode.get(encodeNumber(0)) ?? encodeNumber(0))
  return { mode, prefixes, policies, endpoints }
}

function* readPrefixes(map: KernelMap, isPaused: boolean): Slices<PrefixBatch> {
  for (let pass = 1; ; pass++) {
    const prefixes = new PrefixBatch()
    const isWhole = yield* eachSlice(map, isPaused && pass <= PASSES, (keys, values, count) =>
      prefixes.addAll(keys, values, count),
    )
    if (isWhole) return prefixes
  }
}

/** Visits each entry. Returns false if the map started again. */
function* eachEntry(
  map: KernelMap,
  isPaused: boolean,
  visit: Parameters<KernelMap['forEach']>[0],
): Slices<boolean> {
  const { keySize, valueSize } = map
  return yield* eachSlice(map, isPaused, (keys, values, count) => {
    for (let i = 0; i < count; i++) visit(keys, i * keySize, values, i * valueSize)
  })
}

/** Visits the entries one slice at a time. Keys and values each follow without a gap. Returns false if the map started again. */
function* eachSlice(
  map: KernelMap,
  isPaused: boolean,
  visit: (keys: Uint8Array, values: Uint8Array, count: number) => void,
): Slices<boolean> {
  const reader = map.reader()
  let first: Uint8Array | undefined
  while (!reader.done) {
    const count = reader.read(isPaused ? SLICE : WHOLE)
    if (count > 0 && first !== undefined && isAt(reader.keys, first)) return false
    if (count > 0) first ??= reader.keys.slice(0, map.keySize)
    visit(reader.keys, reader.values, count)
    if (isPaused) yield undefined
  }
  return true
}

function isAt(keys: Uint8Array, key: Uint8Array): boolean {
  return key.every((octet, i) => octet === keys[i])
}

/** Threads that read the two maps of prefixes. */
export class ReadAhead {
  readonly #hosts: ReadingMap
  readonly #trie: ReadingMap

  private constructor(hosts: ReadingMap, trie: ReadingMap) {
    this.#hosts = hosts
    this.#trie = trie
  }

  /** Returns undefined if a map does not exist. */
  static begin(bpf: Bpf, pinPath: string): ReadAhead | undefined {
    const hosts = ReadingMap.begin(bpf, pinPath, 'ng_hosts')
    if (hosts === undefined) return undefined
    const trie = ReadingMap.begin(bpf, pinPath, 'ng_ipcache')
    if (trie !== undefined) return new ReadAhead(hosts, trie)
    hosts.take()
    return undefined
  }

  /**
   * Waits for the threads and returns their entries. Call it exactly once. Returns undefined if a map could not be read, or if
   * its pin is now another map: an older layout ran since, and this layout begins with an empty map (layouts.ts).
   */
  take(): PrefixParts | undefined {
    const [hosts, trie] = [this.#hosts.take(), this.#trie.take()]
    return hosts === undefined || trie === undefined ? undefined : { hosts, trie }
  }
}

class ReadingMap {
  readonly #bpf: Bpf
  readonly #pin: string
  /** The inode of the pin. A map that is pinned again has another one. */
  readonly #inode: number | undefined
  readonly #fd: number
  readonly #reading: object | number

  private constructor(bpf: Bpf, pin: string, fd: number) {
    this.#bpf = bpf
    this.#pin = pin
    this.#inode = inodeOf(pin)
    this.#fd = fd
    this.#reading = bpf.gather(fd, PREFIX_KEY_SIZE, PREFIX_VALUE_SIZE)
  }

  static begin(bpf: Bpf, pinPath: string, name: MapName): ReadingMap | undefined {
    const pin = join(pinDirectory(pinPath), name)
    const fd = bpf.openPin(pin)
    if (fd < 0) return undefined
    const [keySize, valueSize] = shapeOf(bpf, fd)
    if (keySize === PREFIX_KEY_SIZE && valueSize === PREFIX_VALUE_SIZE)
      return new ReadingMap(bpf, pin, fd)
    bpf.close(fd)
    return undefined
  }

  take(): PrefixBatch | undefined {
    const read =
      typeof this.#reading === 'number' ? this.#reading : this.#bpf.gathered(this.#reading)
    this.#bpf.close(this.#fd)
    if (typeof read === 'number' || inodeOf(this.#pin) !== this.#inode) return undefined
    return PrefixBatch.of(...read)
  }
}

/** Undefined if the file does not exist. */
function inodeOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.ino
}

function shapeOf(bpf: Bpf, fd: number): Uint32Array {
  const shape = new Uint32Array(3)
  bpf.shape(fd, shape)
  return shape
}
