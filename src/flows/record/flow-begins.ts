// The beginnings of flows whose packets are reported. A packet is recorded with the names that its peer had when the flow began: a
// name that was resolved later was not contacted by it. The reader of datapath events writes here, at most some thousand times a
// second. A flow whose first packet was not reported, or that was forgotten for want of room, begins with the current packet.
// About 1 MiB when full.

import type { DatapathEvent } from '../../datapath/entries.ts'

/** The flow that began first goes. */
const FLOWS_MAX = 8192
/** A flow without a packet for so long is over; its ports are another's then. */
const IDLE_MS = 180_000

interface Flow {
  readonly began: number
  seen: number
}

export class FlowBegins {
  readonly #flows = new Map<string, Flow>()

  /** `Clock.now()` when the flow of a reported packet began, as far as is known. */
  of(event: DatapathEvent): number {
    const { seen } = event
    if (event.localPort === 0) return seen
    const key = keyOf(event)
    const known = this.#flows.get(key)
    if (known !== undefined && !event.opening && seen - known.seen < IDLE_MS) {
      known.seen = Math.max(known.seen, seen)
      return Math.min(known.began, seen)
    }
    this.#flows.delete(key)
    if (this.#flows.size >= FLOWS_MAX) {
      for (const first of this.#flows.keys()) {
        this.#flows.delete(first)
        break
      }
    }
    this.#flows.set(key, { began: seen, seen })
    return seen
  }
}

function keyOf({ endpoint, protocol, localPort, port, peer }: DatapathEvent): string {
  return `${endpoint} ${protocol} ${localPort} ${port} ${peer.join('.')}`
}
