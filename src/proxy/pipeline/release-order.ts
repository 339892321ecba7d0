// Which held answers are before which: all of them in the order in which they came, and those to one endpoint about one
// name in a chain of their own, so that none overtakes another of its chain. Lists in typed arrays over slots; each
// slot is in at most once. All steps are O(1).

const NONE = -1
/** Above the largest hash of a name: an endpoint and a hash are one number. */
const HASHES = 2 ** 32

export class ReleaseOrder {
  readonly #next: Int32Array
  readonly #previous: Int32Array
  /** Whose end a slot waits for, and who waits for its end; NONE: nobody. */
  readonly #ahead: Int32Array
  readonly #behind: Int32Array
  readonly #keys: Float64Array
  readonly #isIn: Uint8Array
  /** Last slot of each chain. Names with equal hashes share one: they wait needlessly, in the right order. */
  readonly #tails = new Map<number, number>()
  #first = NONE
  #last = NONE
  #count = 0

  constructor(options: { readonly capacity: number }) {
    const { capacity } = options
    this.#next = new Int32Array(capacity)
    this.#previous = new Int32Array(capacity)
    this.#ahead = new Int32Array(capacity)
    this.#behind = new Int32Array(capacity)
    this.#keys = new Float64Array(capacity)
    this.#isIn = new Uint8Array(capacity)
  }

  get count(): number {
    return this.#count
  }

  /** The slot that came first; below 0 when there is none. */
  get first(): number {
    return this.#first
  }

  /** The slot that came next; below 0 behind the last. */
  after(slot: number): number {
    return this.#next[slot]!
  }

  has(slot: number): boolean {
    return this.#isIn[slot] === 1
  }

  /** Whether a slot of this endpoint and name, which may itself be in, has another before it. */
  isBehind(slot: number, endpoint: number, nameHash: number): boolean {
    if (this.has(slot)) return this.#ahead[slot] !== NONE
    return this.#tails.has(keyOf(endpoint, nameHash))
  }

  /** The slot before it in its chain; below 0 when it's the first. */
  ahead(slot: number): number {
    return this.#ahead[slot]!
  }

  /** Adds a slot at the end. */
  add(slot: number, endpoint: number, nameHash: number): void {
    const key = keyOf(endpoint, nameHash)
    const tail = this.#tails.get(key) ?? NONE
    this.#keys[slot] = key
    this.#ahead[slot] = tail
    this.#behind[slot] = NONE
    if (tail !== NONE) this.#behind[tail] = slot
    this.#tails.set(key, slot)
    this.#previous[slot] = this.#last
    this.#next[slot] = NONE
    if (this.#last === NONE) this.#first = slot
    else this.#next[this.#last] = slot
    this.#last = slot
    this.#isIn[slot] = 1
    this.#count++
  }

  remove(slot: number): void {
    this.#unlink(this.#previous[slot]!, this.#next[slot]!)
    const ahead = this.#ahead[slot]!
    const behind = this.#behind[slot]!
    if (ahead !== NONE) this.#behind[ahead] = behind
    if (behind !== NONE) this.#ahead[behind] = ahead
    else if (ahead !== NONE) this.#tails.set(this.#keys[slot]!, ahead)
    else this.#tails.delete(this.#keys[slot]!)
    this.#isIn[slot] = 0
    this.#count--
  }

  #unlink(previous: number, next: number): void {
    if (previous === NONE) this.#first = next
    else this.#next[previous] = next
    if (next === NONE) this.#last = previous
    else this.#previous[next] = previous
  }
}

function keyOf(endpoint: number, nameHash: number): number {
  return endpoint * HASHES + nameHash
}
