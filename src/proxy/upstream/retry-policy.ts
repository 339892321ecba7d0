// When the next attempt of a query is due, and whether the budget allows it. Another server is asked as soon as the
// answer is overdue by what is known of the server asked, so a server's death costs its queries some tens of
// milliseconds. The same server again is given longer: a name that it must look up first takes longer than most, and
// a second question doesn't speed that up. Delays are rounded up to a few lanes (delay-queue.ts).

/** Overdue is no sooner than this: our own turns and short pauses of a server take some of it. */
export const OVERDUE_MIN_MS = 50
/** Of a server that hasn't answered yet. */
const UNKNOWN_MS = 400
/** The same server again: so many times what makes an answer overdue, and no sooner than that. */
const SAME_SERVER_FACTOR = 4
const SAME_SERVER_MIN_MS = 400
const LANE_GROWTH = 1.5

/**
 * Milliseconds from one attempt to the next. `overdue`: what the server's times say, undefined when it never answered;
 * `elsewhere`: there is a server that is up and wasn't asked; `share`: an attempt's share of the query's time.
 */
export function retryDelay(overdue: number | undefined, elsewhere: boolean, share: number): number {
  if (elsewhere) return Math.min(Math.max(overdue ?? UNKNOWN_MS, OVERDUE_MIN_MS), share)
  if (overdue === undefined) return share
  const again = Math.max(overdue * SAME_SERVER_FACTOR, SAME_SERVER_MIN_MS)
  // A server that takes longer than the share is waited for: it will take as long a second time.
  return Math.max(Math.min(again, share), overdue)
}

/** Delays that attempts wait, growing, up to the whole time of a query. */
export function retryLanes(timeout: number, attempts: number): readonly number[] {
  const share = timeout / attempts
  const lanes: number[] = []
  for (let ms = OVERDUE_MIN_MS; ms < timeout; ms *= LANE_GROWTH) lanes.push(ms)
  lanes.push(UNKNOWN_MS, share, timeout)
  return [...new Set(lanes)].sort((a, b) => a - b)
}

/** Retries in stock: what 5,000 q/s have in flight in 1.6 s, longer than any attempt waits. */
export const RETRY_STOCK = 8192
const PER_ANSWER = 0.25

/**
 * How many attempts after the first may be made because an answer was overdue: a stock for the moment when a server
 * dies, refilled by answers. In the long run at most one retry leaves for four answers, so a server that
 * is slow or silent for good isn't asked everything three times [A13]. Attempts after an error that the kernel reported
 * are not counted: nothing arrived there. O(1).
 */
export class RetryBudget {
  #stock = RETRY_STOCK

  get stock(): number {
    return this.#stock
  }

  /** An answer came. */
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
