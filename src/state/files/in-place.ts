// Whether a file that was written is still the one at its place. One that was removed goes on taking what is written into
// it, and nobody would find that again. A look costs one stat.

import type { Disk, FileMark } from './disk.ts'

export class InPlace {
  readonly name: string
  readonly #disk: Disk
  readonly #mark: FileMark | undefined

  /** The file that has the name `now`, and is to have `name`. */
  constructor(disk: Disk, name: string, now = name) {
    this.#disk = disk
    this.name = name
    this.#mark = lookAt(disk, now)
  }

  /** Whether it is the same file with at least `octets`, however it has grown. */
  grows(octets: number): boolean {
    const now = this.#disk.mark(this.name)
    return now !== undefined && now.id === this.#mark?.id && now.octets >= octets
  }

  /** Whether it is the same file, and nobody wrote to it. */
  get rests(): boolean {
    const [before, now] = [this.#mark, this.#disk.mark(this.name)]
    return now !== undefined && now.id === before?.id && now.written === before.written
  }
}

function lookAt(disk: Disk, name: string): FileMark | undefined {
  try {
    return disk.mark(name)
  } catch {
    // Then it is not known to be in its place.
    return undefined
  }
}
