// DegradedRows lists the rows whose identity lacks fqdn labels because no number was free for the whole label set. For each row it keeps
// the endpoint whose answer wanted the identity (0 for none). `IpCache.heal` checks these rows again, a few at a time, and gives a row its
// whole set when a number is free.

export class DegradedRows {
  readonly #askers = new Map<number, number>()

  get size(): number {
    return this.#askers.size
  }

  /** Returns the endpoint whose answer wanted the row's identity, or undefined when the row is not degraded. */
  askerOf(row: number): number | undefined {
    return this.#askers.get(row)
  }

  add(row: number, asker: number): void {
    this.#askers.set(row, asker)
  }

  delete(row: number): void {
    this.#askers.delete(row)
  }

  /** Returns the number of degraded rows for each endpoint. */
  byEndpoint(): ReadonlyMap<number, number> {
    const counts = new Map<number, number>()
    for (const asker of this.#askers.values()) counts.set(asker, (counts.get(asker) ?? 0) + 1)
    return counts
  }

  /** Moves the first `limit` rows to the end of the list and calls `visit` for each. `visit` can delete the row. */
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
