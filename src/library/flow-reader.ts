// Gives a program the flows one after another. A reader stores no flows. The reader reads the daemon's ring, which overwrites its oldest
// flow, and counts the flows that were overwritten before the reader came to them. A waiting reader looks at the ring every 20 ms, so
// reading costs the packet path nothing.

import { FLOW_CAPACITY } from '../flows/record/flow-ring.ts'
import type { AdminState } from '../admin/state.ts'
import { flowView } from '../admin/views/flows.ts'
import type { Flow, FlowOptions, Flows } from './gate.ts'

const LOOK_MS = 20
/** How many flows a reader looks at in one turn, so that other work can run. */
const FLOWS_PER_TURN = 256

export class FlowReader implements Flows {
  readonly #state: AdminState
  readonly #only: string | undefined
  readonly #endpoint: string | undefined
  readonly #bound: number
  readonly #onEnd: () => void
  #next: number
  #dropped = 0
  /** The reader ends before the flow with this number. */
  #until = Number.POSITIVE_INFINITY
  #closed = false
  #wake: (() => void) | undefined
  /** The previous read. Reads are answered in order. */
  #last: Promise<unknown> = Promise.resolve()

  /** `onEnd` is called when the reader was ended. */
  constructor(
    state: AdminState,
    { only, endpoint, kept, bound }: FlowOptions,
    onEnd: () => void = () => undefined,
  ) {
    this.#state = state
    this.#onEnd = onEnd
    this.#only = only
    this.#endpoint = endpoint
    this.#bound = bound ?? FLOW_CAPACITY
    this.#next = kept === true ? state.flows.oldest : state.flows.count
  }

  get dropped(): number {
    return this.#dropped
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<Flow, undefined>> {
    const read = this.#last.then(async () => await this.#read())
    this.#last = read
    return await read
  }

  /** Ends the reader. Reads that wait end too. */
  async return(): Promise<IteratorResult<Flow, undefined>> {
    this.#closed = true
    this.#onEnd()
    this.#wake?.()
    return await Promise.resolve({ done: true, value: undefined })
  }

  end(): void {
    this.#until = Math.min(this.#until, this.#state.flows.count)
    this.#onEnd()
    this.#wake?.()
  }

  async #read(): Promise<IteratorResult<Flow, undefined>> {
    const { flows, clock } = this.#state
    while (!this.#closed) {
      const flow = this.#take()
      if (flow !== undefined) return { done: false, value: flow }
      if (this.#next >= this.#until) break
      if (this.#next < flows.count) await new Promise<void>((done) => clock.soon(done))
      else await this.#wait()
    }
    return { done: true, value: undefined }
  }

  /** Returns the next flow that fits the options. Undefined if there is none among the flows that one turn looks at. */
  #take(): Flow | undefined {
    const { flows } = this.#state
    const behind = Math.max(flows.oldest, flows.count - this.#bound)
    const oldest = Math.min(behind, this.#until)
    if (this.#next < oldest) {
      this.#dropped += oldest - this.#next
      this.#next = oldest
    }
    const end = Math.min(flows.count, this.#until, this.#next + FLOWS_PER_TURN)
    while (this.#next < end) {
      const flow = flowView(this.#state, this.#next++, this.#only)
      if (flow === undefined) continue
      if (this.#endpoint === undefined || flow.endpoint === this.#endpoint) return flow
    }
    return undefined
  }

  async #wait(): Promise<void> {
    await new Promise<void>((done) => {
      const timer = this.#state.clock.after(LOOK_MS, done)
      this.#wake = () => {
        timer.cancel()
        done()
      }
    })
    this.#wake = undefined
  }
}
