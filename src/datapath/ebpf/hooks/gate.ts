// Gate attaches the gate program before routing (gate.bpf.c) and writes the names that the gate closes. The gate is an addition.
// Kernels before 6.4 lack it. Such a kernel closes an interface only when its programs are attached, about a millisecond after it
// appears, and the adapter reports this. An interface that is there gets its programs before its name is written, so it
// loses no packet. Every later interface of that name is closed until it has programs. Names outlive the process, so an interface
// that appears without a daemon is closed too.

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { nativeFile } from '../../../native/native-files.ts'
import { errnoName, type Bpf, type LoadedObject } from '../../../native/native.ts'
import type { HookState } from '../../entries.ts'
import { pinDirectory } from '../maps/bpffs.ts'
import { keyOf, keyText, type KernelMap } from '../maps/kernel-map.ts'
import { encodeGateName, encodeNumber } from '../maps/layout.ts'

const FILE = 'namegate-gate.bpf.o'
const SECTION = 'netfilter'
/** Runs before defragmentation (-400) and all hooks after defragmentation. */
const PRIORITY = -500
/** Daemons with other pins in the same network namespace use one priority each. */
const PRIORITIES = 16
const FAMILIES = { inet: 2, inet6: 10 } as const
const EBUSY = -16

export interface GateOptions {
  readonly bpf: Bpf
  readonly pinPath: string
  readonly names: KernelMap
}

export class Gate {
  readonly #options: GateOptions
  readonly #object: LoadedObject | undefined
  /** How many callers want each key. Keys are in hex. */
  readonly #wanted = new Map<string, number>()
  /** Keys that an earlier process left and this process has not added yet. */
  #stale: Set<string>
  readonly state: HookState

  constructor(options: GateOptions) {
    this.#options = options
    const { bpf, pinPath, names } = options
    this.#stale = new Set(names.keyTexts())
    const file = nativeFile(FILE)
    const loaded = existsSync(file)
      ? bpf.load(readFileSync(file), SECTION, pinDirectory(pinPath), {})
      : 0
    this.#object = typeof loaded === 'number' ? undefined : loaded
    const failure = typeof loaded === 'number' ? loaded : this.#attach(loaded)
    this.state =
      failure === undefined
        ? { kind: 'attached' }
        : { kind: 'failed', reason: failure === 0 ? `${FILE} is not built` : errnoName(failure) }
  }

  /** Closes interfaces that match a name, or the beginning of a name and a final `*`, until they have an entry. */
  add(pattern: string): void {
    const key = encodeGateName(pattern)
    if (key === undefined) return
    const text = keyText(key)
    const count = this.#wanted.get(text) ?? 0
    this.#wanted.set(text, count + 1)
    const isThere = this.#stale.delete(text) || count > 0
    if (!isThere) this.#options.names.set(key, encodeNumber(1))
  }

  /** Call this once for each `add`. */
  remove(pattern: string): void {
    const key = encodeGateName(pattern)
    if (key === undefined) return
    const count = (this.#wanted.get(keyText(key)) ?? 0) - 1
    if (count > 0) this.#wanted.set(keyText(key), count)
    else if (this.#wanted.delete(keyText(key))) this.#options.names.delete(key)
  }

  /** Removes the names that an earlier process left. Call this when every wanted name has been added. */
  dropStale(): void {
    for (const text of this.#stale) this.#options.names.delete(keyOf(text))
    this.#stale = new Set()
  }

  /** The keys that the map should have, as text. */
  keys(): ReadonlySet<string> {
    return new Set([...this.#wanted.keys(), ...this.#stale])
  }

  /** Families whose gate program another process removed. */
  lost(): readonly string[] {
    if (this.state.kind !== 'attached') return []
    return Object.keys(FAMILIES).filter((name) => !existsSync(this.#pinOf(name)))
  }

  attachAgain(): void {
    if (this.#object !== undefined) this.#attach(this.#object)
  }

  close(): void {
    if (this.#object !== undefined) this.#options.bpf.unload(this.#object.handle)
  }

  /** Returns undefined on success, or the errno. */
  #attach({ programs }: LoadedObject): number | undefined {
    const { bpf } = this.#options
    const program = programs['ng_gate_in'] ?? -1
    for (const [name, family] of Object.entries(FAMILIES)) {
      let result = EBUSY
      for (let i = 0; i < PRIORITIES && result === EBUSY; i++) {
        result = bpf.netfilterAttach(program, family, PRIORITY + i, this.#pinOf(name))
      }
      if (result !== 0) return result
    }
    return undefined
  }

  #pinOf(name: string): string {
    return join(pinDirectory(this.#options.pinPath), `gate_${name}`)
  }
}
