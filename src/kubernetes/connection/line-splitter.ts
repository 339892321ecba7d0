// LineSplitter turns the octets of a watch into lines. A line has a bound, so that a faulty server cannot fill the memory.

export class LineSplitter {
  readonly #lengthMax: number
  readonly #onLine: (line: string) => void
  #parts: Buffer[] = []
  #length = 0

  constructor(lengthMax: number, onLine: (line: string) => void) {
    this.#lengthMax = lengthMax
    this.#onLine = onLine
  }

  /** Takes the next octets. Returns false if a line is too long. Nothing may be taken after that. */
  take(octets: Buffer): boolean {
    let start = 0
    for (let end = octets.indexOf(10); end >= 0; end = octets.indexOf(10, start)) {
      if (!this.#keep(octets.subarray(start, end))) return false
      this.#flush()
      start = end + 1
    }
    return this.#keep(octets.subarray(start))
  }

  /** True if the last line has not ended. */
  get isInsideLine(): boolean {
    return this.#length > 0
  }

  #keep(part: Buffer): boolean {
    this.#length += part.length
    if (this.#length > this.#lengthMax) return false
    if (part.length > 0) this.#parts.push(part)
    return true
  }

  #flush(): void {
    const [only, ...others] = this.#parts
    if (only !== undefined) {
      const line = others.length === 0 ? only : Buffer.concat(this.#parts)
      this.#parts = []
      this.#length = 0
      this.#onLine(line.toString('utf8'))
    }
  }
}
