// Randomness as a port, and a pool of 16-bit numbers drawn from it. Query ids, source ports and the
// choice of a socket come from here, so an attacker off the path has nothing to predict
// (RFC 5452 9.2; docs/spec/correctness F2, P10). One system call fills the pool for 4,096 draws.

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
  /** Index of the next unused number; POOL_DRAWS when all are used. */
  #next = POOL_DRAWS

  constructor(source: RandomSource) {
    this.#source = source
  }

  /** Uniform in 0..65535. */
  uint16(): number {
    if (this.#next === POOL_DRAWS) {
      this.#source.fill(this.#octets)
      this.#next = 0
    }
    return this.#numbers[this.#next++]!
  }

  /** Uniform in 0..bound-1 for a bound of 1..65536, without modulo bias. */
  below(bound: number): number {
    const fair = 65536 - (65536 % bound)
    let value = this.uint16()
    while (value >= fair) value = this.uint16()
    return value % bound
  }
}
