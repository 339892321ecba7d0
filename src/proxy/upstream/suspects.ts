// A reply with an unknown id that names a question in flight on its socket is taken for a guess at that question [A4].
// Looks at the newest waits of the socket only, and compares hashes first: a flood costs a parse and a short walk.

import { nameLength } from '../../core/name.ts'
import { hashOctets } from '../../core/tables/keyed-hash.ts'
import { questionEquals } from '../../dns/match.ts'
import { HEADER_OCTETS, readName, u16 } from '../../dns/wire.ts'
import { hashQuestion, type InFlightTable } from '../messages/in-flight.ts'
import { SlotView } from '../messages/slot-view.ts'
import type { WaitTable } from './wait-table.ts'

/** Waits of a socket looked at, newest first. */
const SUSPECTS_MAX = 256

export class Suspects {
  readonly #inFlight: InFlightTable
  readonly #waits: WaitTable
  readonly #view = new SlotView()
  readonly #name = new Uint8Array(255)

  constructor(inFlight: InFlightTable, waits: WaitTable) {
    this.#inFlight = inFlight
    this.#waits = waits
  }

  /** Calls `repeat` with each wait of the socket that the message guesses at, until one says that it took it. */
  find(
    socket: number,
    octets: Uint8Array,
    offset: number,
    length: number,
    repeat: (wait: number) => boolean,
  ): void {
    if (length < HEADER_OCTETS) return
    const end = offset + length
    const behind = readName(octets, offset, end, offset + HEADER_OCTETS, this.#name)
    if (behind < 0 || behind + 4 > end) return
    const nameHash = hashOctets(this.#name, 0, nameLength(this.#name))
    const hash = hashQuestion(nameHash, u16(octets, behind), u16(octets, behind + 2))
    let wait = this.#waits.newestOf(socket)
    for (let i = 0; i < SUSPECTS_MAX && wait >= 0; i++, wait = this.#waits.olderThan(wait)) {
      const slot = this.#waits.slotOf(wait)
      if (this.#inFlight.questionHashes[slot] !== hash) continue
      this.#view.read(this.#inFlight, slot)
      if (questionEquals(octets, offset, length, this.#view) && repeat(wait)) return
    }
  }
}
