// This file decides when the next attempt of a query is due, and if the budget allows it. Another server is asked as soon as the
// answer is overdue, by the answer times of the server that was asked. So if a server fails, its queries lose some tens of
// milliseconds. The same server is asked again only after a longer delay. If the server must look up a name, its answer takes
// longer, and a second query does not speed it up. Delays are rounded up to a few lanes (DelayQueue).

/** An answer is overdue after this time at the earliest, because turns of this process and short pauses of a server take time. */
export const OVERDUE_MIN_MS = 50
/** An answer of a server that has not answered yet is overdue after this time. */
const UNKNOWN_MS = 400
/** The same server is asked again after its overdue time times this factor, but at the earliest after SAME_SERVER_MIN_MS. */
const SAME_SERVER_FACTOR = 4
const SAME_SERVER_MIN_MS = 400
const LANE_GROWTH = 1.5

/** The time of a query in milliseconds, and its number of attempts. */
export interface QueryTime {
  readonly timeout: number
  readonly attempts: number
}

/**
 * Returns the milliseconds from one attempt to the next. `overdue`: after how many milliseconds an answer of the server is overdue;
 * undefined if it never answered. `elsewhere`: true if another server is up and was not asked.
 */
export function retryDelay(
  overdue: number | undefined,
  elsewhere: boolean,
  { timeout, attempts }: QueryTime,
): number {
  const share = timeout / attempts
  if (elsewhere) return Math.min(Math.max(overdue ?? UNKNOWN_MS, OVERDUE_MIN_MS), share)
  if (overdue === undefined) return share
  const again = Math.max(overdue * SAME_SERVER_FACTOR, SAME_SERVER_MIN_MS)
  // A server that usually takes longer than `share` gets its usual time, because a second query would take as long. The last attempt
  // still gets its share, because the usual time of a server that answers rarely can be wrong.
  return Math.max(Math.min(again, share), Math.min(overdue, timeout - share))
}

/** Returns the delays of the lanes in milliseconds, in ascending order, up to the whole time of a query. */
export function retryLanes({ timeout, attempts }: QueryTime): readonly number[] {
  const share = timeout / attempts
  const lanes: number[] = []
  for (let ms = OVERDUE_MIN_MS; ms < timeout; ms *= LANE_GROWTH) lanes.push(ms)
  lanes.push(UNKNOWN_MS, share, timeout)
  return [...new Set(lanes)].sort((a, b) => a - b)
}

/** The largest stock of retries: the queries that arrive in 1.6 s at 5,000 q/s. An attempt waits for a shorter time. */
export const RETRY_STOCK = 8192
const PER_ANSWER = 0.25

/**
 * RetryBudget limits the retries after overdue answers. It has a stock for the moment when a server fails, and every answer adds a
 * quarter of a retry. So in the long run there is at most one retry for four answers. A server that stays slow or silent does not
 * get every query three times [A13]. A retry after an error from the kernel is free, because nothing arrived at the server.
 * All steps are O(1).
 */
export class RetryBudget {
  #stock = RETRY_STOCK

  get stock(): number {
    return this.#stock
  }

  /** Adds to the stock after an answer. */
  answered(): void {
    this.#stock = Math.min(RETRY_STOCK, this.#stock + PER_ANSWER)
  }

  /** Takes one retry. Returns false if the stock is empty. */
  take(): boolean {
    if (this.#stock < 1) return false
    this.#stock--
    return true
  }
}
