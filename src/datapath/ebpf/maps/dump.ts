// This file reads everything in force back from the kernel's maps: at once, in slices between commits, or ahead of time by a
// thread. A pass over the trie of prefixes continues from the last key that it read. If that key is gone, the kernel starts again
// from the first key, and the pass starts again too. After three such passes, the next pass reads without pauses.

import { join } from 'node:path'
import type { DatapathDump, DatapathEndpoint, PolicyEntry } from '../../entries.ts'
import { PREFIX_KEY_SIZE, PREFIX_VALUE_SIZE, PrefixBatch } from '../../prefix-batch.ts'
import type { KernelMap, KernelMaps } from './kernel-map.ts'
import { formatHookKey } from '../../hooks/find-hook.ts'
import { decodeEndpoint, decodeHookKey, decodeMode, decodePolicy, encodeNumber } from './layout.ts'
import { Sources } from './sources.ts'
import type { Bpf } from '../../../native/native.ts'
import { pinDirectory } from './bpffs.ts'

/** Entries between two pauses. They take a millisecond or less. */
const SLICE = 512
const WHOLE = 4096
const PASSES = 3

type Slices<T> = Generator<undefined, T>

/** `prefixes` are the prefixes that a thread read ahead. */
export function readDump(maps: KernelMaps, prefixes?: PrefixBatch): DatapathDump {
  const reading = readParts(maps, false, prefixes)
  for (;;) {
    const step = reading.next()
    if (step.done === true) return step.value
  }
}

/** Reads like `readDump`, with pauses. An entry that changes during the read can have its old or its new value. */
export function readDumpInSlices(maps: KernelMaps): Slices<DatapathDump> {
  return readParts(maps, true)
}

function* readParts(
  maps: KernelMaps,
  isPaused: boolean,
  known?: PrefixBatch,
): Slices<DatapathDump> {
  const prefixes = known ?? (yield* readPrefixes(maps.ng_ipcache, isPaused))
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

export class ReadAhead {
  readonly #bpf: Bpf
  readonly #fd: number
  readonly #reading: object | number

  private constructor(bpf: Bpf, fd: number) {
    this.#bpf = bpf
    this.#fd = fd
    this.#reading = bpf.gather(fd, PREFIX_KEY_SIZE, PREFIX_VALUE_SIZE)
  }

  /** Returns undefined if there is no such map. */
  static begin(bpf: Bpf, pinPath: string): ReadAhead | undefined {
    const fd = bpf.openPin(join(pinDirectory(pinPath), 'ng_ipcache'))
    if (fd < 0) return undefined
    const [keySize, valueSize] = shapeOf(bpf, fd)
    if (keySize === PREFIX_KEY_SIZE && valueSize === PREFIX_VALUE_SIZE)
      return new ReadAhead(bpf, fd)
    bpf.close(fd)
    return undefined
  }

  /** Waits for the thread and returns its entries. Call it exactly once. Returns undefined if the map could not be read. */
  take(): PrefixBatch | undefined {
    const read =
      typeof this.#reading === 'number' ? this.#reading : this.#bpf.gathered(this.#reading)
    this.#bpf.close(this.#fd)
    return typeof read === 'number' ? undefined : PrefixBatch.of(...read)
  }
}

function shapeOf(bpf: Bpf, fd: number): Uint32Array {
  const shape = new Uint32Array(3)
  bpf.shape(fd, shape)
  return shape
}
