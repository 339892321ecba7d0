// Stores the names of flows in a ring of octets in wire form, and for each flow where its name ends in the ring. A flow whose name was
// overwritten reads as a flow without a name. Names keep the case in which they were asked. Readers lower the case off the packet path.

import { formatName, lower, NAME_OCTETS_MAX } from '../../core/name.ts'

const NAME_OCTETS = 1 << 22

export class FlowNames {
  readonly #ends: Float64Array
  readonly #lengths: Uint8Array
  readonly #octets = new Uint8Array(NAME_OCTETS)
  #written = 0

  /** `slots`: how many flows exist at a time. */
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

  /** Writes the name in lower case and returns its length. Returns 0 for a slot without a name and for an overwritten name. */
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

  /** Returns an offset at which `length` octets in a row can be written, and counts them as written. */
  #roomFor(length: number): number {
    const at = this.#written & (NAME_OCTETS - 1)
    const skipped = at + length > NAME_OCTETS ? NAME_OCTETS - at : 0
    this.#written += skipped + length
    return (at + skipped) & (NAME_OCTETS - 1)
  }
}
