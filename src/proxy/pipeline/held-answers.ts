// HeldAnswers stores the octets of held answers by slot. An answer of up to 512 octets is copied to its slot's cell in one large
// array, which the first held answer allocates. The array takes 32 MiB of address space by default; the kernel gives memory only
// to the pages in use. Longer answers are stored one by one, within a budget. If the datapath applies commits at once, no answer
// is held, so the array is never allocated.

import type { MessageView } from '../../dns/message-view.ts'
import { copyOctets } from '../messages/octet-store.ts'

/** Octets of a cell. Nearly all answers fit. */
const CELL = 512
/** The budget of all longer answers together, in octets: 16,384 answers of 4,096 octets, or 1,024 of the longest possible. */
const LONG_ANSWER_OCTETS_MAX = 64 * 1024 * 1024

export class HeldAnswers {
  readonly #capacity: number
  #cells = new Uint8Array(0)
  #lengths = new Uint32Array(0)
  /** 1 if the answer of the slot came over TCP. */
  #overTcp = new Uint8Array(0)
  readonly #long = new Map<number, Uint8Array>()
  #longOctets = 0

  constructor(options: { readonly capacity: number }) {
    this.#capacity = options.capacity
  }

  /** Copies an answer. Returns false if the answer is longer than a cell and exceeds the budget. */
  put(slot: number, message: MessageView, overTcp: boolean): boolean {
    const { octets, offset, length } = message
    if (this.#lengths.length === 0) this.#make()
    if (length > CELL && this.#longOctets + length > LONG_ANSWER_OCTETS_MAX) return false
    this.#lengths[slot] = length
    this.#overTcp[slot] = overTcp ? 1 : 0
    if (length <= CELL) {
      copyOctets(octets, offset, this.#cells, slot * CELL, length)
    } else {
      this.#long.set(slot, message.copy())
      this.#longOctets += length
    }
    return true
  }

  /** Points the view `into` at the answer of a slot, and returns the view. */
  view(slot: number, into: MessageView): MessageView {
    const length = this.#lengths[slot]!
    const long = this.#long.get(slot)
    return long === undefined
      ? into.set(this.#cells, slot * CELL, length)
      : into.set(long, 0, length)
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
