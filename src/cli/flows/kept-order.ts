// KeptOrder puts flows in the order of the times of their first flows. In memory, a packet is behind later queries. On disk, lines are in the
// order in which they were written, and a line that counts repeated flows was written up to `KEPT_SPAN_MS` after the first of them. So
// KeptOrder holds the lines of this time. A line that came later, because the disk took none or the clock was set, is printed out of order.

import { KEPT_SPAN_MS } from '../../flows/flow-folder.ts'
import { textOf } from '../fields.ts'
import type { FlowFields } from './flow-fields.ts'

/** The daemon writes a line within this time after it is due. */
const LATE_MS = 60_000
/** How many flows are held at least before they are sorted. */
const HELD_MIN = 256

export class KeptOrder {
  readonly #print: (flow: FlowFields) => void
  #held: { readonly time: number; readonly flow: FlowFields }[] = []
  /** How many flows are held until the next sort. */
  #heldMax = HELD_MIN
  /** The last time in any line. */
  #last = 0

  constructor(print: (flow: FlowFields) => void) {
    this.#print = print
  }

  add(flow: FlowFields): void {
    const time = Date.parse(textOf(flow.time))
    this.#held.push({ time, flow })
    this.#last = Math.max(this.#last, Date.parse(textOf(flow.last ?? flow.time)))
    if (this.#held.length >= this.#heldMax) this.#release(this.#last - KEPT_SPAN_MS - LATE_MS)
  }

  /** Prints all flows that are held. */
  end(): void {
    this.#release(Number.POSITIVE_INFINITY)
  }

  /** Prints the flows before this time. */
  #release(until: number): void {
    const sorted = this.#held.toSorted((a, b) => a.time - b.time)
    const isHeld = (each: { readonly time: number }): boolean => each.time >= until
    const first = sorted.findIndex(isHeld)
    const count = first < 0 ? sorted.length : first
    for (const { flow } of sorted.slice(0, count)) this.#print(flow)
    this.#held = sorted.slice(count)
    this.#heldMax = Math.max(HELD_MIN, 2 * this.#held.length)
  }
}
