// A state folder in memory that keeps every octet as a real one would, and that can fail, end the process, or lose power
// at any call. What is appended later is written when `turn` lets it, so that other writes come before or after.

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Disk, DiskFile, FileMark } from '../../../src/state/files/disk.ts'

/** The process is gone: nothing comes behind this. */
export class Ended extends Error {}

/** What happens at a call: `end` of the process, or an error. Half of what is to be written is written. */
export interface Upset {
  /** Calls that go well before. */
  readonly after: number
  readonly kind: 'end' | 'ENOSPC' | 'EROFS' | 'EIO' | 'short'
  /** How many calls from there on fail; all by default. `end` is for good. */
  readonly times?: number
}

class MemoryFile {
  static count = 0
  readonly id = String(MemoryFile.count++)
  octets = new Uint8Array(0)
  /** Octets that survive the loss of power. */
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
  /** Calls that change something, so far. */
  calls = 0
  hasEnded = false
  #upset: Upset | undefined
  #later: (() => void)[] = []

  upset(upset: Upset | undefined): void {
    this.#upset = upset === undefined ? undefined : { ...upset, after: this.calls + upset.after }
  }

  /** Lets what was asked for happen, and everyone go on until nothing more is asked for. */
  async settle(): Promise<void> {
    do {
      for (const run of this.#later.splice(0)) run()
      await nextTurn()
    } while (this.#later.length > 0)
  }

  /** The same folder as the next process finds it. */
  copy(): MemoryDisk {
    const copy = new MemoryDisk()
    for (const [name, { octets, synced }] of this.files) copy.put(name, octets.slice(), synced)
    return copy
  }

  /** As it is when the power was lost: of what was not synced, so much is there as `keep` says. */
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

  /** Octets of `octets` that are written; ends or throws where it is to. */
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
          // The promise of a process that has ended is never kept.
          if (!(error instanceof Ended)) reject(error)
        }
      })
    })
  }
}

function errorOf(code: string): Error {
  return Object.assign(new Error(code), { code })
}
