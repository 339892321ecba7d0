// RowTable is a hash table from hash to row number, for rows whose keys are stored elsewhere. It holds pairs (hash, row) by linear
// probing, with at most half of the places in use. Row 0 marks a free place. The top bits of the hash select one of 64 parts. Each part
// grows alone, so that no single insert has to move the whole table.
//
// Cost: 16 to 32 octets per row. When a part grows, 1/64 of the rows are moved.

const PARTS = 64
const PART_SHIFT = 26
const FIRST_PLACES = 8

export class RowTable {
  readonly #parts: Int32Array[] = []
  readonly #used = new Int32Array(PARTS)

  constructor() {
    for (let i = 0; i < PARTS; i++) this.#parts.push(new Int32Array(FIRST_PLACES * 2))
  }

  /** Octets of all parts. */
  get octets(): number {
    return this.#parts.reduce((sum, part) => sum + part.byteLength, 0)
  }

  /**
   * Returns the part that has the rows of this hash. Each place is two numbers: the hash, then the row. A search begins at
   * `placeOf(hash, part)`, continues at `(place + 2) & (part.length - 1)`, and ends at the first row 0.
   */
  partOf(hash: number): Int32Array {
    return this.#parts[hash >>> PART_SHIFT]!
  }

  insert(hash: number, row: number): void {
    const number = hash >>> PART_SHIFT
    let part = this.#parts[number]!
    this.#used[number] = this.#used[number]! + 1
    if (this.#used[number]! * 4 > part.length) {
      part = grown(part)
      this.#parts[number] = part
    }
    put(part, hash, row)
  }

  /** Removes a row that is in the table. Moves later rows back, so that no free place hides them from a search. */
  remove(hash: number, row: number): void {
    const part = this.partOf(hash)
    const mask = part.length - 1
    this.#used[hash >>> PART_SHIFT]!--
    let hole = placeOf(hash, part)
    while (part[hole + 1] !== row) hole = (hole + 2) & mask
    for (let at = (hole + 2) & mask; part[at + 1] !== 0; at = (at + 2) & mask) {
      const home = placeOf(part[at]!, part)
      if (((at - home) & mask) < ((at - hole) & mask)) continue
      part[hole] = part[at]!
      part[hole + 1] = part[at + 1]!
      hole = at
    }
    part[hole] = 0
    part[hole + 1] = 0
  }
}

/** Returns the index in the part at which a search for a hash begins. */
export function placeOf(hash: number, part: Int32Array): number {
  return (hash << 1) & (part.length - 1)
}

function grown(part: Int32Array): Int32Array {
  const larger = new Int32Array(part.length * 2)
  for (let at = 0; at < part.length; at += 2) {
    if (part[at + 1] !== 0) put(larger, part[at]!, part[at + 1]!)
  }
  return larger
}

function put(part: Int32Array, hash: number, row: number): void {
  const mask = part.length - 1
  let at = placeOf(hash, part)
  while (part[at + 1] !== 0) at = (at + 2) & mask
  part[at] = hash
  part[at + 1] = row
}
