// Rows that the batch of answers at hand needs: what it taught must stay until its answers are released. One octet a row; a mark
// can seem set again 255 batches later, and then a row is spared for that one batch.

export class BatchMarks {
  readonly #marks: Uint8Array
  #batch = 1

  constructor(options: { readonly capacity: number }) {
    this.#marks = new Uint8Array(options.capacity + 1)
  }

  /** The next batch: nothing is marked. */
  begin(): void {
    this.#batch = (this.#batch % 255) + 1
  }

  mark(row: number): void {
    this.#marks[row] = this.#batch
  }

  /** The row is free or another's now. */
  clear(row: number): void {
    this.#marks[row] = 0
  }

  has(row: number): boolean {
    return this.#marks[row] === this.#batch
  }
}
