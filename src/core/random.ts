// RandomSource is the port for random octets, and RandomPool draws 16-bit numbers from it. The proxy draws query ids, source ports
// and the choice of a socket, so an attacker off the path cannot predict them (RFC 5452 9.2; docs/spec/correctness F2, P10).
// Waits before a repeated request get their random part from it. One system call fills the pool for 4,096 draws.

import { randomFillSync } from 'node:crypto'

export interface RandomSource {
  /** Fills all of `target` with unpredictable octets. */
  fill(target: Uint8Array): void
}

export const systemRandom: RandomSource = {
  fill(target) {
    randomFillSync(target)
  },
}

const POOL_DRAWS = 4096

export class RandomPool {
  readonly #source: RandomSource
  readonly #numbers = new Uint16Array(POOL_DRAWS)
  readonly #octets = new Uint8Array(this.#numbers.buffer)
  /** Index of the next unused number; POOL_DRAWS if all are used. */
  #next = POOL_DRAWS

  constructor(source: RandomSource) {
    this.#source = source
  }

  /** Returns a uniform random number in 0..65535. */
  uint16(): number {
    if (this.#next === POOL_DRAWS) {
      this.#source.fill(this.#octets)
      this.#next = 0
    }
    return this.#numbers[this.#next++]!
  }

  /** Returns a uniform random number in 0..bound-1, without modulo bias. `bound` is 1..65536. */
  below(bound: number): number {
    const fair = 65536 - (65536 % bound)
    let value = this.uint16()
    while (value >= fair) value = this.uint16()
    return value % bound
  }
}
