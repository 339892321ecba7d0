// Which lengths the prefixes that pass labels down have, for one family: few of the 33 or 129 there are. A longest match asks
// for these and for no other. Written by the prefix table when a container comes or goes.

const LENGTHS = 129

export class LengthsInUse {
  readonly #counts = new Int32Array(LENGTHS)
  #longestFirst: readonly number[] = []

  /** Each once. */
  get longestFirst(): readonly number[] {
    return this.#longestFirst
  }

  /** A prefix of a length came (1) or went (-1). */
  count(length: number, change: 1 | -1): void {
    const now = this.#counts[length]! + change
    this.#counts[length] = now
    const isNews = now === 0 || now - change === 0
    if (!isNews) return
    const others = this.#longestFirst.filter((other) => other !== length)
    this.#longestFirst = now === 0 ? others : [...others, length].sort((a, b) => b - a)
  }
}
