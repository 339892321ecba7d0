// How many attempts after the first may be made because an answer was overdue: a stock for the moment when a server
// dies, filled again by answers. So in the long run at most one retry leaves for four answers, and a server that
// is slow or silent for good isn't asked everything three times [A13]. Attempts after an error that the kernel reported
// are not counted: nothing arrived there. O(1).

/** Retries in stock: what 5,000 q/s have in flight in 1.6 s, longer than any attempt waits. */
export const RETRY_STOCK = 8192
const PER_ANSWER = 0.25

export class RetryBudget {
  #stock = RETRY_STOCK

  get stock(): number {
    return this.#stock
  }

  answered(): void {
    this.#stock = Math.min(RETRY_STOCK, this.#stock + PER_ANSWER)
  }

  /** Takes one retry; false when there is none. */
  take(): boolean {
    if (this.#stock < 1) return false
    this.#stock--
    return true
  }
}
