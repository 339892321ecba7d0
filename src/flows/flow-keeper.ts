// FlowKeeper reads the ring of flows and gives outputs one line for equal flows. FlowKeeper reads the ring ten times a second while flows
// are added, in slices of about a millisecond, and counts equal flows (FlowTally). Once a second FlowKeeper gives the outputs the lines
// that are due, as JSON `{time, last, count, node, ...flow}`; `time` is the time of the first flow. FlowKeeper never waits for an output.
// Lines for which no output has room stay counted and are written later. A flow is lost if the tally has no row for it, or if the ring
// overwrote the flow before FlowKeeper read it. Lost flows are reported in a line of kind `lost`.

import type { FlowRing } from './record/flow-ring.ts'
import type { Clock, Timer } from '../core/clock.ts'
import type { FlowOutput, FlowOutputName } from './flow-outputs.ts'
import { FlowTally, type Counted, type DescribeFlow } from './flow-tally.ts'

const LOOK_MS = 100
const DRAIN_MS = 1_000
/** How many flows of the ring, and how many lines for the outputs, one slice takes. */
const LOOK_SLICE = 4_096
const DRAIN_SLICE = 512
/** An upper bound of a line's length: names are short, and the endpoints file bounds lists of labels. */
const LINE_MAX = 8_192
/** `flush` waits this many rounds, one second in all, for outputs that wait for a disk or a reader. */
const FLUSH_ROUNDS = 100
const FLUSH_ROUND_MS = 10

export interface FlowKeeperOptions {
  readonly ring: FlowRing
  readonly clock: Clock
  readonly outputs: readonly FlowOutput[]
  /** The name of this node, which is written in each line. */
  readonly node: string
  readonly describe: DescribeFlow
}

export class FlowKeeper {
  readonly tally: FlowTally
  /** Flows that the ring overwrote before they were read. */
  overrun = 0
  /** Lines that an output took, and lines for which an output had no room while another output had. */
  readonly taken = new Map<FlowOutputName, number>()
  readonly refused = new Map<FlowOutputName, number>()
  readonly #options: FlowKeeperOptions
  readonly #node: string
  #seen: number
  #reported = 0
  #isLooking = false
  #nextDrain = 0
  #timer: Timer | undefined
  #isStopped = false

  constructor(options: FlowKeeperOptions) {
    const { ring, describe } = options
    this.#options = options
    this.#node = JSON.stringify(options.node)
    this.tally = new FlowTally(ring, describe)
    this.#seen = ring.count
  }

  /** Flows that no line reports. */
  get lost(): number {
    return this.overrun + this.tally.lost
  }

  start(): void {
    this.#tickIn(LOOK_MS)
  }

  /** Writes the last lines and stops the outputs. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#timer?.cancel()
    await this.flush()
    await Promise.all(this.#options.outputs.map(async (output) => await output.stop()))
  }

  /** Writes all counted lines, also those that are due later, as far as the outputs take them within a second. */
  async flush(): Promise<void> {
    const { clock } = this.#options
    while (this.#look());
    for (let i = 0; i < FLUSH_ROUNDS && this.#drain(true); i++) {
      await new Promise<void>((resolve) => clock.after(FLUSH_ROUND_MS, resolve))
    }
  }

  #tickIn(ms: number): void {
    if (this.#isStopped) return
    this.#timer?.cancel()
    this.#timer = this.#options.clock.after(ms, () => this.#tick())
  }

  #tick(): void {
    const { clock, ring } = this.#options
    const isQuiet = ring.count === this.#seen
    if (!this.#isLooking) this.#lookOn()
    const now = clock.now()
    if (now >= this.#nextDrain) {
      for (const output of this.#options.outputs) output.tick()
      this.#nextDrain = now + (this.#drain(false) ? LOOK_MS : DRAIN_MS)
    }
    this.#tickIn(isQuiet ? Math.max(LOOK_MS, this.#nextDrain - now) : LOOK_MS)
    if (isQuiet) ring.onNext(() => this.#tickIn(LOOK_MS))
  }

  #lookOn(): void {
    this.#isLooking = this.#look()
    if (this.#isLooking) this.#options.clock.soon(() => this.#lookOn())
  }

  /** Counts one slice of the ring. Returns true when the ring has more flows. */
  #look(): boolean {
    const { ring, clock } = this.#options
    if (this.#seen < ring.oldest) {
      this.overrun += ring.oldest - this.#seen
      this.#seen = ring.oldest
    }
    const now = clock.now()
    const until = Math.min(ring.count, this.#seen + LOOK_SLICE)
    while (this.#seen < until) this.tally.add(this.#seen++, now)
    return this.#seen < ring.count
  }

  /** Gives the outputs one slice of lines. Returns true when due lines are left. */
  #drain(all: boolean): boolean {
    const { clock, outputs } = this.#options
    const room = Math.max(0, ...outputs.map((output) => output.room))
    if (room < LINE_MAX) return true
    let text = this.#lostLine(clock.wall())
    let lines = text === '' ? 0 : 1
    let left = false
    const take = (counted: Counted): boolean => {
      left = lines === DRAIN_SLICE || text.length + LINE_MAX > room
      if (left) return false
      text += this.#line(counted)
      lines++
      return true
    }
    this.tally.drain(clock.now(), take, all)
    if (lines > 0) this.#hand(text, lines)
    return left
  }

  #hand(text: string, lines: number): void {
    const octets = Buffer.byteLength(text)
    for (const output of this.#options.outputs) {
      const fits = octets <= output.room
      const counts = fits ? this.taken : this.refused
      counts.set(output.name, (counts.get(output.name) ?? 0) + lines)
      if (fits) output.write(text)
    }
  }

  #line({ text, count, first, last }: Counted): string {
    const times = `"time":"${formatTime(first)}","last":"${formatTime(last)}"`
    return `{${times},"count":${count},"node":${this.#node},${text}}\n`
  }

  #lostLine(now: number): string {
    const count = this.lost - this.#reported
    if (count === 0) return ''
    this.#reported = this.lost
    const text = '"kind":"lost","verdict":"event","endpoint":null'
    return this.#line({ text, count, first: now, last: now })
  }
}

function formatTime(ms: number): string {
  return new Date(ms).toISOString()
}
