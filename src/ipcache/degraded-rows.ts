// Rows whose identity lacks fqdn labels because no number was free for the whole set, with the endpoint whose answer wanted it (0 for
// none). They get the whole set when numbers are free again: each is checked in its turn, a few at a time.

export class DegradedRows {
  readonly #askers = new Map<number, number>()

  get size(): number {
    return this.#askers.size
  }

  /** The endpoint that wanted a row's labels; undefined when it has them all. */
  askerOf(row: number): number | undefined {
    return this.#askers.get(row)
  }

  add(row: number, asker: number): void {
    this.#askers.set(row, asker)
  }

  delete(row: number): void {
    this.#askers.delete(row)
  }

  /** How many there are by endpoint. */
  byEndpoint(): ReadonlyMap<number, number> {
    const counts = new Map<number, number>()
    for (const asker of this.#askers.values()) counts.set(asker, (counts.get(asker) ?? 0) + 1)
    return counts
  }

  /** Hands the next rows to `visit`, which may delete them, and puts what is left at the end. */
  turn(limit: number, visit: (row: number, asker: number) => void): void {
    let left = Math.min(limit, this.#askers.size)
    for (const [row, asker] of this.#askers) {
      if (left-- === 0) return
      this.#askers.delete(row)
      this.#askers.set(row, asker)
      visit(row, asker)
    }
  }
}
