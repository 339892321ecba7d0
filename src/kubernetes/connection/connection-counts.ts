// The numbers of a connection, for metrics.

export interface ConnectionCounts {
  /** Sessions begun. */
  sessions: number
  goaways: number
  pings: number
  /** Sessions that ended because a ping had no answer. */
  unanswered: number
  /** Octets of bodies as they came, before decompression. */
  octets: number
  /** Lines of watches that reached their bound. */
  longLines: number
  /** Bodies that reached their bound. */
  longBodies: number
}

export function newConnectionCounts(): ConnectionCounts {
  return {
    sessions: 0,
    goaways: 0,
    pings: 0,
    unanswered: 0,
    octets: 0,
    longLines: 0,
    longBodies: 0,
  }
}
