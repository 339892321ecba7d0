// Answers that may still come though nobody waits for them: of attempts that another one overtook or that ran out of
// time, and of probes. They tell that a server lives and how long it takes, nothing else: no client sees them
// and nothing is learned. A direct-mapped table of (socket, id): a newer entry takes the place of an older one, and the
// price of a lost one is a server thought slow or silent a little longer. Typed arrays; O(1), nothing allocated.

/** Answers expected at once; a power of two. Twice what 1,000 abandoned attempts a second have open in 4 s. */
const SIZE = 8192
const MIX = 0x9e3779b1
const NEVER = -1

export class LateAnswers {
  readonly #keys = new Uint32Array(SIZE)
  readonly #sentAt = new Float64Array(SIZE).fill(NEVER)

  /** An answer with that id may come on the socket of that number to what was sent at `sentAt` (the clock's ms). */
  expect(socket: number, id: number, sentAt: number): void {
    const at = placeOf(socket, id)
    this.#keys[at] = keyOf(socket, id)
    this.#sentAt[at] = sentAt
  }

  /** When the question was sent whose answer has come now; negative when none was expected. */
  take(socket: number, id: number): number {
    const at = placeOf(socket, id)
    if (this.#keys[at] !== keyOf(socket, id)) return NEVER
    const sentAt = this.#sentAt[at]!
    this.#sentAt[at] = NEVER
    return sentAt
  }
}

/** Socket numbers and ids have 16 bits each. */
function keyOf(socket: number, id: number): number {
  return ((socket << 16) | id) >>> 0
}

function placeOf(socket: number, id: number): number {
  return (Math.imul(socket + 1, MIX) ^ id) & (SIZE - 1)
}
