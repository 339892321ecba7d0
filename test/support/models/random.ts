// Random numbers that repeat with the same seed, so that a failure can be replayed (xorshift32, Marsaglia).

export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0 || 1
  }

  /** 1..2^32-1. */
  next(): number {
    let x = this.#state
    x ^= x << 13
    x ^= x >>> 17
    x ^= x << 5
    this.#state = x >>> 0
    return this.#state
  }

  /** 0..n-1. */
  below(n: number): number {
    return this.next() % n
  }

  /** True once in n on average. */
  oneIn(n: number): boolean {
    return this.below(n) === 0
  }

  pick<T>(items: readonly T[]): T {
    const item = items[this.below(items.length)]
    if (item === undefined) throw new Error('nothing to pick from')
    return item
  }

  octets(length: number): Uint8Array {
    return Uint8Array.from({ length }, () => this.below(256))
  }
}
