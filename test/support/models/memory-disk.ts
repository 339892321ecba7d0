// A state folder in memory that keeps every octet like a real one. At any call it can fail, end the process, or lose power. A delayed
// call runs at the next `settle`, so that other writes can happen before or after it.

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Disk, DiskFile, FileMark } from '../../../src/state/files/disk.ts'

/** The process has ended. Every later call throws this, too. */
export class Ended extends Error {}

/** The fault of a call: `end` of the process, or an error. A failing write writes half of its octets. */
export interface Upset {
  /** The number of calls that succeed before the fault. */
  readonly after: number
  readonly kind: 'end' | 'ENOSPC' | 'EROFS' | 'EIO' | 'short'
  /** The number of calls that fail from there on; by default all. `end` is final. */
  readonly times?: number
}

class MemoryFile {
  static count = 0
  readonly id = String(MemoryFile.count++)
  octets = new Uint8Array(0)
  /** Octets that survive a loss of power. */
  synced = 0

  append(octets: Uint8Array): void {
    const joined = new Uint8Array(this.octets.length + octets.length)
    joined.set(this.octets)
    joined.set(octets, this.octets.length)
    this.octets = joined
  }
}

export class MemoryDisk implements Disk {
  readonly files = new Map<string, MemoryFile>()
  /** The number of calls so far that change something. */
  calls = 0
  hasEnded = false
  #upset: Upset | undefined
  #later: (() => void)[] = []

  upset(upset: Upset | undefined): void {
    this.#upset = upset === undefined ? undefined : { ...upset, after: this.calls + upset.after }
  }

  /** Runs delayed calls until there are no more. */
  async settle(): Promise<void> {
    do {
      for (const run of this.#later.splice(0)) run()
      await nextTurn()
    } while (this.#later.length > 0)
  }

  /** The folder as the next process finds it. */
  copy(): MemoryDisk {
    const copy = new MemoryDisk()
    for (const [name, { octets, synced }] of this.files) copy.put(name, octets.slice(), synced)
    return copy
  }

  /** The folder after a loss of power. `keep` chooses how many of the unsynced octets remain. */
  withoutPower(keep: (octets: number) => number): MemoryDisk {
    const copy = new MemoryDisk()
    for (const [name, { octets, synced }] of this.files) {
      const length = synced + keep(octets.length - synced)
      copy.put(name, octets.slice(0, length), synced)
    }
    return copy
  }

  put(name: string, octets: Uint8Array, synced = octets.length): void {
    const file = new MemoryFile()
    file.octets = Uint8Array.from(octets)
    file.synced = synced
    this.files.set(name, file)
  }

  get(name: string): Uint8Array {
    const file = this.files.get(name)
    if (file === undefined) throw errorOf('ENOENT')
    return file.octets
  }

  names(): readonly string[] {
    return [...this.files.keys()]
  }

  mark(name: string): FileMark | undefined {
    const file = this.files.get(name)
    return file && { id: file.id, octets: file.octets.length, written: file.octets.length }
  }

  read(name: string, octetsMax: number): Uint8Array {
    const octets = this.get(name)
    if (octets.length > octetsMax) throw new Error(`found ${octets.length} octets`)
    return octets
  }

  create(name: string): DiskFile {
    this.#call()
    if (this.files.has(name)) throw errorOf('EEXIST')
    const file = new MemoryFile()
    this.files.set(name, file)
    return {
      appendNow: (octets) => this.#append(file, octets),
      append: async (octets) => await this.#soon(() => this.#append(file, octets)),
      sync: async () => {
        await this.#soon(() => {
          this.#call()
          file.synced = file.octets.length
        })
      },
      close: async () => await this.#soon(() => undefined),
    }
  }

  async rename(from: string, to: string): Promise<void> {
    await this.#soon(() => {
      this.#call()
      const file = this.files.get(from)
      if (file === undefined) throw errorOf('ENOENT')
      this.files.delete(from)
      this.files.set(to, file)
    })
  }

  async remove(name: string): Promise<void> {
    await this.#soon(() => {
      this.#call()
      if (!this.files.delete(name)) throw errorOf('ENOENT')
    })
  }

  async sync(): Promise<void> {
    await this.#soon(() => this.#call())
  }

  /** Returns how many octets were written. Throws at a fault. */
  #append(file: MemoryFile, octets: Uint8Array): number {
    const half = octets.subarray(0, Math.floor(octets.length / 2))
    try {
      this.#call(true)
    } catch (error) {
      file.append(half)
      if (error instanceof Error && error.message === 'short') return half.length
      throw error
    }
    file.append(octets)
    return octets.length
  }

  #call(isWrite = false): void {
    if (this.hasEnded) throw new Ended()
    const upset = this.#upset
    const at = this.calls++
    if (upset === undefined || at < upset.after) return
    if (upset.kind === 'end') {
      this.hasEnded = true
      throw new Ended()
    }
    if (upset.kind === 'short' && !isWrite) return
    if (at < upset.after + (upset.times ?? Infinity)) throw errorOf(upset.kind)
  }

  async #soon<T>(run: () => T): Promise<T> {
    return await new Promise((resolve, reject) => {
      this.#later.push(() => {
        try {
          resolve(run())
        } catch (error) {
          // After the end of the process, its promises stay pending.
          if (!(error instanceof Ended)) reject(error)
        }
      })
    })
  }
}

function errorOf(code: string): Error {
  return Object.assign(new Error(code), { code })
}
