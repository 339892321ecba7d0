// Flows for a program, one after another. A reader keeps nothing: it reads the daemon's ring, which overwrites its oldest flow, and
// counts what it missed. Adding a flow calls no listener, so it costs the packet path nothing; a waiting reader looks every 20 ms.

import { FLOW_CAPACITY } from '../flows/record/flow-ring.ts'
import type { AdminState } from '../admin/state.ts'
import { flowView } from '../admin/views/flows.ts'
import type { Flow, FlowOptions, Flows } from './gate.ts'

const LOOK_MS = 20
/** Flows looked at before others get their turn. */
const FLOWS_PER_TURN = 256

export class FlowReader implements Flows {
  readonly #state: AdminState
  readonly #only: string | undefined
  readonly #endpoint: string | undefined
  readonly #bound: number
  readonly #onEnd: () => void
  #next: number
  #dropped = 0
  /** The first flow that is not wanted any more. */
  #until = Number.POSITIVE_INFINITY
  #closed = false
  #wake: (() => void) | undefined
  /** The read before: reads are answered in the order they were asked. */
  #last: Promise<unknown> = Promise.resolve()

  /** `onEnd` is called when nothing more is read. */
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

  /** Ends it; reads that wait are told so. */
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

  /** The next flow that is wanted, of a turn's worth. */
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
