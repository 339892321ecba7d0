// Names of flows: wire octets in a ring of their own, and the end of each flow's name in it. A name that was overwritten reads as
// absent. Names keep the case in which they were asked, and are lowered when they are read, off the packet path.

import { formatName, lower, NAME_OCTETS_MAX } from '../../core/name.ts'

const NAME_OCTETS = 1 << 22

export class FlowNames {
  readonly #ends: Float64Array
  readonly #lengths: Uint8Array
  readonly #octets = new Uint8Array(NAME_OCTETS)
  #written = 0

  /** `slots`: as many flows as there are at a time. */
  constructor(slots: number) {
    this.#ends = new Float64Array(slots)
    this.#lengths = new Uint8Array(slots)
  }

  put(slot: number, name: Uint8Array, offset: number, length: number): void {
    const to = this.#roomFor(length)
    for (let i = 0; i < length; i++) this.#octets[to + i] = name[offset + i]!
    this.#ends[slot] = this.#written
    this.#lengths[slot] = length
  }

  clear(slot: number): void {
    this.#lengths[slot] = 0
  }

  /** Writes the name in lower case; gives its length, 0 without one or when it was overwritten. */
  copy(slot: number, into: Uint8Array): number {
    const length = this.#lengthOf(slot)
    const from = this.#start(slot)
    for (let i = 0; i < length; i++) into[i] = lower(this.#octets[from + i]!)
    return length
  }

  format(slot: number): string | undefined {
    const name = new Uint8Array(NAME_OCTETS_MAX)
    return this.copy(slot, name) === 0 ? undefined : formatName(name)
  }

  #lengthOf(slot: number): number {
    const length = this.#lengths[slot]!
    return this.#ends[slot]! - length < this.#written - NAME_OCTETS ? 0 : length
  }

  #start(slot: number): number {
    return (this.#ends[slot]! - this.#lengths[slot]!) & (NAME_OCTETS - 1)
  }

  /** Where so many octets in a row can be written. */
  #roomFor(length: number): number {
    const at = this.#written & (NAME_OCTETS - 1)
    const skipped = at + length > NAME_OCTETS ? NAME_OCTETS - at : 0
    this.#written += skipped + length
    return (at + skipped) & (NAME_OCTETS - 1)
  }
}
