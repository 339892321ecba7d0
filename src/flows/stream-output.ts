// Writes lines of flows to a stream, in practice standard output. A slow reader fills the stream's buffer up to a bound; a reader
// that is gone ends the output, which is logged once.

import type { Writable } from 'node:stream'
import type { Clock } from '../core/clock.ts'
import type { Log } from '../telemetry/log.ts'
import type { FlowOutput } from './flow-output.ts'

const BUFFER_MAX = 262_144
const STOP_MS = 1_000

export class StreamOutput implements FlowOutput {
  readonly name = 'stdout'
  readonly #stream: Writable
  readonly #clock: Clock
  #isGone = false

  constructor(stream: Writable, clock: Clock, log: Log) {
    this.#stream = stream
    this.#clock = clock
    stream.on('error', (error) => {
      if (!this.#isGone) log.warn({ reason: error.message }, 'nobody reads flows any more')
      this.#isGone = true
    })
  }

  get room(): number {
    return this.#isGone ? 0 : Math.max(0, BUFFER_MAX - this.#stream.writableLength)
  }

  write(lines: string): void {
    this.#stream.write(lines)
  }

  tick(): void {
    // The stream goes on by itself.
  }

  async stop(): Promise<void> {
    if (this.#isGone || this.#stream.writableLength === 0) return
    const written = new Promise<void>((resolve) => this.#stream.write('', () => resolve()))
    const late = new Promise<void>((resolve) => this.#clock.after(STOP_MS, resolve))
    await Promise.race([written, late])
  }
}
