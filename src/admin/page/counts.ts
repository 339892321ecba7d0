// Counts what the page did, for the metrics.

export interface PageCounts {
  viewers: number
  /** Viewers that were disconnected because they did not read. */
  stalled: number
  /** Requests that were refused, by reason. */
  readonly refused: {
    /** Without a token, or with a wrong one. */
    token: number
    /** After too many wrong tokens. */
    guesses: number
    /** From another site. */
    origin: number
    /** More viewers or searches than there is room for. */
    busy: number
  }
}

export function newPageCounts(): PageCounts {
  return { viewers: 0, stalled: 0, refused: { token: 0, guesses: 0, origin: 0, busy: 0 } }
}
