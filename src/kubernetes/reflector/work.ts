// Work is the one thing that a reflector does at a time: an open request with a limit for silence, a wait, or a place in the queue of the
// gate. Beginning one of them ends the one before.

import type { Clock, Timer } from '../../core/clock.ts'
import type { ApiRequest } from '../connection/api-port.ts'
import type { RelistGate } from './relist-gate.ts'

export class Work {
  readonly #clock: Clock
  #request: ApiRequest | undefined
  #timer: Timer | undefined
  #leaveGate: (() => void) | undefined
  #beganAt = 0
  #heardAt = 0
  #limitMs = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Milliseconds since the request was opened. */
  get age(): number {
    return this.#clock.now() - this.#beganAt
  }

  /** Keeps an open request. Calls `onSilence` once when `ms` milliseconds have passed without a sign of life. Keeps a turn at the gate. */
  open(request: ApiRequest, ms: number, onSilence: () => void): void {
    this.#endRequest()
    this.#request = request
    this.#beganAt = this.#clock.now()
    this.#limitMs = ms
    this.heard()
    const look = (): void => {
      const left = this.#heardAt + this.#limitMs - this.#clock.now()
      if (left > 0) this.#timer = this.#clock.after(left, look)
      else onSilence()
    }
    this.#timer = this.#clock.after(ms, look)
  }

  /** Allows a longer silence from now on. */
  allow(ms: number): void {
    this.#limitMs = ms
  }

  /** Notes a sign of life. Costs one read of the clock, and no timer. */
  heard(): void {
    this.#heardAt = this.#clock.now()
  }

  wait(ms: number, run: () => void): void {
    this.end()
    this.#timer = this.#clock.after(ms, run)
  }

  /** Waits for the turn, and calls `run`. The turn ends with `leaveGate` or `end`. */
  queue(gate: RelistGate, run: () => void): void {
    this.end()
    this.#leaveGate = gate.enter(run)
  }

  leaveGate(): void {
    this.#leaveGate?.()
    this.#leaveGate = undefined
  }

  end(): void {
    this.#endRequest()
    this.leaveGate()
  }

  #endRequest(): void {
    this.#request?.cancel()
    this.#timer?.cancel()
    this.#request = undefined
    this.#timer = undefined
  }
}
