// Octets of answers that wait for the datapath, by the slot of their query. Small ones lie in cells of one slab that is
// made with the first answer that waits and touched only as far as it is used (32 MiB of address space by default);
// longer ones aside, within a budget. A datapath that applies at once never has it made.

import { copyOctets, copyOf } from '../messages/octet-store.ts'

/** Octets of an answer that fit a cell: nearly all. */
const CELL = 512
/** Octets of longer answers kept in all: 16,384 of 4,096 octets, or 1,024 of the longest possible. */
const LONG_ANSWER_OCTETS_MAX = 64 * 1024 * 1024

export class HeldAnswers {
  readonly #capacity: number
  #cells = new Uint8Array(0)
  #lengths = new Uint32Array(0)
  /** 1 where the answer came over TCP. */
  #overTcp = new Uint8Array(0)
  readonly #long = new Map<number, Uint8Array>()
  #longOctets = 0

  constructor(options: { readonly capacity: number }) {
    this.#capacity = options.capacity
  }

  /** Copies an answer; false when the budget of long ones is used up. */
  put(slot: number, octets: Uint8Array, offset: number, length: number, overTcp: boolean): boolean {
    if (this.#lengths.length === 0) this.#make()
    if (length > CELL && this.#longOctets + length > LONG_ANSWER_OCTETS_MAX) return false
    this.#lengths[slot] = length
    this.#overTcp[slot] = overTcp ? 1 : 0
    if (length <= CELL) {
      copyOctets(octets, offset, this.#cells, slot * CELL, length)
    } else {
      this.#long.set(slot, copyOf(octets, offset, length))
      this.#longOctets += length
    }
    return true
  }

  /** The array that holds the answer, `length(slot)` octets from `offset(slot)`. */
  octets(slot: number): Uint8Array {
    return this.#long.get(slot) ?? this.#cells
  }

  offset(slot: number): number {
    return this.#lengths[slot]! <= CELL ? slot * CELL : 0
  }

  length(slot: number): number {
    return this.#lengths[slot]!
  }

  isOverTcp(slot: number): boolean {
    return this.#overTcp[slot] === 1
  }

  drop(slot: number): void {
    if (this.#long.delete(slot)) this.#longOctets -= this.#lengths[slot]!
  }

  #make(): void {
    this.#cells = new Uint8Array(this.#capacity * CELL)
    this.#lengths = new Uint32Array(this.#capacity)
    this.#overTcp = new Uint8Array(this.#capacity)
  }
}
